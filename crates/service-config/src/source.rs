//! What a service runs on.

use thiserror::Error;

use crate::auth::AuthSettings;

/// What a service runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The document of this version.
    Document {
        /// Its version.
        version: i64,
    },
    /// The last good document, since the present one cannot be used or read.
    LastGood {
        /// The version of the good one.
        version: i64,
        /// What is wrong with the present one.
        problem: Doubt,
    },
    /// Safe defaults: there was no good document since the start.
    SafeDefaults {
        /// Why there is none.
        problem: Doubt,
    },
}

/// Why a document is not to be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Doubt {
    /// Nobody wrote one.
    #[error("there is no document")]
    Missing,
    /// It makes no sense.
    #[error("version {version} cannot be used: {problems}")]
    Broken {
        /// Its version.
        version: i64,
        /// What is wrong with it.
        problems: String,
    },
    /// Nobody can tell.
    #[error("{0}")]
    Unreadable(String),
}

// === impl Source ===

impl Source {
    /// The name in health reports and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Document { .. } => "document",
            Self::LastGood { .. } => "last_good",
            Self::SafeDefaults { .. } => "safe_defaults",
        }
    }

    /// Every name.
    pub const NAMES: [&'static str; 3] = ["document", "last_good", "safe_defaults"];

    /// The version of the document in force, if it is one.
    pub const fn version(&self) -> Option<i64> {
        match self {
            Self::Document { version } | Self::LastGood { version, .. } => Some(*version),
            Self::SafeDefaults { .. } => None,
        }
    }

    /// Why it is not the present document.
    pub const fn problem(&self) -> Option<&Doubt> {
        match self {
            Self::Document { .. } => None,
            Self::LastGood { problem, .. } | Self::SafeDefaults { problem } => Some(problem),
        }
    }
}

// === impl Doubt ===

impl Doubt {
    /// Where nobody ever wrote a document, nobody asked for logins. Where one cannot be read, it may
    /// have: an open door would be a guess.
    pub(crate) const fn auth(&self) -> AuthSettings {
        match self {
            Self::Missing => AuthSettings::OFF,
            Self::Broken { .. } | Self::Unreadable(_) => AuthSettings::REQUIRED,
        }
    }
}
