//! How an answer came about that the store could not give.

use std::fmt;

use crate::{FailMode, StoreError};

/// How an answer came about that the store could not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Degraded {
    /// What decided instead.
    pub source: Source,
    /// Why the store did not.
    pub cause: FailCause,
}

/// What decided in the store's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The check's failure mode.
    FailMode(FailMode),
    /// A denial that the store gave earlier, whose time is not up.
    RememberedDenial,
}

/// Why a store did not answer, as metrics tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailCause {
    /// The call was not sent, or lost to others: too many at once.
    Overloaded,
    /// The call was sent, and no answer came in time.
    Timeout,
    /// The store cannot be reached, refuses the call, or is left alone by the circuit breaker.
    Unavailable,
}

impl Degraded {
    /// An answer that `source` gave because of `cause`.
    pub const fn new(source: Source, cause: FailCause) -> Self {
        Self { source, cause }
    }

    /// The name in APIs and metrics: the failure mode's, or `remembered`.
    pub const fn name(self) -> &'static str {
        self.source.name()
    }

    /// The failure mode, where one decided.
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

    /// The name in APIs and metrics.
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

    /// The name in metrics and logs.
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
