//! Decisions that the store could not make.

use std::fmt;

use crate::{FailMode, StoreError};

/// Source and cause of a decision that the store could not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Degraded {
    /// Source of a decision that the store could not make.
    pub source: Source,
    /// Cause of the store's failure to decide.
    pub cause: FailCause,
}

/// Source of a decision that the store could not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The check's failure mode.
    FailMode(FailMode),
    /// An earlier denial by the store that has not expired. See
    /// [`DenialCache`](crate::DenialCache).
    RememberedDenial,
}

/// Cause of a store's failure to answer, as reported in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailCause {
    /// Too many calls at once: this one was not sent, or lost to concurrent updates.
    Overloaded,
    /// The call was sent and not answered in time.
    Timeout,
    /// The store cannot be reached, rejects the call, or its circuit breaker is open.
    Unavailable,
}

impl Degraded {
    /// An answer that `source` gave because of `cause`.
    pub const fn new(source: Source, cause: FailCause) -> Self {
        Self { source, cause }
    }

    /// Name in APIs and metrics: that of the failure mode, or `remembered`.
    pub const fn name(self) -> &'static str {
        self.source.name()
    }

    /// The failure mode, if one decided.
    pub const fn fail_mode(self) -> Option<FailMode> {
        match self.source {
            Source::FailMode(mode) => Some(mode),
            Source::RememberedDenial => None,
        }
    }
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Source {
    /// Every source.
    pub const ALL: [Self; 5] = [
        Self::FailMode(FailMode::Capped),
        Self::FailMode(FailMode::Open),
        Self::FailMode(FailMode::Closed),
        Self::FailMode(FailMode::Local),
        Self::RememberedDenial,
    ];

    /// Name in APIs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailMode(mode) => mode.name(),
            Self::RememberedDenial => "remembered",
        }
    }
}

impl FailCause {
    /// Every cause.
    pub const ALL: [Self; 3] = [Self::Overloaded, Self::Timeout, Self::Unavailable];

    /// The cause of `error`.
    pub const fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Overloaded | StoreError::Contended(_) => Self::Overloaded,
            StoreError::Timeout(_) => Self::Timeout,
            StoreError::Unavailable(_)
            | StoreError::BreakerOpen
            | StoreError::Refused(_)
            | StoreError::Corrupt(_)
            | StoreError::Unsupported(_) => Self::Unavailable,
        }
    }

    /// Name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for FailCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
