//! Decisions during an outage of the store.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// Decision on a check while the store is unavailable. See [`FailurePolicy`](crate::FailurePolicy).
///
/// Earlier denials by the store hold until they expire, in every mode. See
/// [`DenialCache`](crate::DenialCache).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailMode {
    /// This process counts with the whole limit: each instance admits at most that much per
    /// subject and window.
    #[default]
    Capped,
    /// Everything is admitted.
    Open,
    /// Everything is denied.
    Closed,
    /// This process counts with its share of the limit.
    Local,
}

/// Error for an unknown name of a failure mode.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown fail mode {0:?}: expected {expected}", expected = FailMode::EXPECTED)]
pub struct UnknownFailMode(pub String);

impl FailMode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Capped, Self::Open, Self::Closed, Self::Local];

    /// The names, for error messages.
    pub const EXPECTED: &'static str = "capped, open, closed or local";

    /// Name in configuration and APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capped => "capped",
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Local => "local",
        }
    }

    /// Returns `true` if checks are counted in this process.
    pub const fn counts(self) -> bool {
        matches!(self, Self::Capped | Self::Local)
    }
}

impl fmt::Display for FailMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FailMode {
    type Err = UnknownFailMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| UnknownFailMode(name.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_and_an_unknown_name_lists_them() {
        for mode in FailMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert!(FailMode::EXPECTED.contains(mode.name()));
        }
        let error = "maybe".parse::<FailMode>().unwrap_err().to_string();
        assert_eq!(error, "unknown fail mode \"maybe\": expected capped, open, closed or local");
    }
}
