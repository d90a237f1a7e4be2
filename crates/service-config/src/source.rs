//! Source of the settings that a service runs on.

use thiserror::Error;

/// Source of the settings that a service runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The document of this version.
    Document {
        /// Its version.
        version: i64,
    },
    /// The last good document, because the current one is invalid or cannot be read.
    LastGood {
        /// Its version.
        version: i64,
        /// Reason that it is not the current one.
        problem: LoadError,
    },
    /// Safe defaults: no good document was read since the start.
    SafeDefaults {
        /// Reason that there is none.
        problem: LoadError,
    },
}

/// Reason that the current document cannot be loaded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// No document was written yet.
    #[error("there is no document")]
    Missing,
    /// The document is invalid.
    #[error("version {version} is invalid: {problems}")]
    Invalid {
        /// Its version.
        version: i64,
        /// Its problems, in one line.
        problems: String,
    },
    /// The document cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

// === impl Source ===

impl Source {
    /// Name in health reports and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Document { .. } => "document",
            Self::LastGood { .. } => "last_good",
            Self::SafeDefaults { .. } => "safe_defaults",
        }
    }

    /// All names.
    pub const NAMES: [&'static str; 3] = ["document", "last_good", "safe_defaults"];

    /// Version of the document in force; `None` with safe defaults.
    pub const fn version(&self) -> Option<i64> {
        match self {
            Self::Document { version } | Self::LastGood { version, .. } => Some(*version),
            Self::SafeDefaults { .. } => None,
        }
    }

    /// Reason that it is not the current document.
    pub const fn problem(&self) -> Option<&LoadError> {
        match self {
            Self::Document { .. } => None,
            Self::LastGood { problem, .. } | Self::SafeDefaults { problem } => Some(problem),
        }
    }
}
