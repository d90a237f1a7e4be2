//! Each algorithm as integer arithmetic on (limit, state, cost, now).
//!
//! The arithmetic is exact: nothing is rounded in anybody's favour, so that a
//! store which keeps the same integers gives the same answers. It assumes that
//! `now` never precedes a state's last change; stores see to that.

pub mod bucket;
pub mod calendar;
pub mod fixed_window;
pub mod sliding_window;
pub mod sliding_window_counter;

use std::{fmt, str::FromStr};

use thiserror::Error;

pub use bucket::Bucket;
pub use calendar::{Calendar, Period};
pub use fixed_window::FixedWindow;
pub use sliding_window::SlidingWindow;
pub use sliding_window_counter::SlidingWindowCounter;

use crate::{Cost, Timestamp};

/// The ways of counting, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A bucket that refills steadily; admits bursts up to its capacity.
    TokenBucket,
    /// The exact log: never more than the limit in any window.
    SlidingWindow,
    /// Two counters that approximate the log in constant space.
    SlidingWindowCounter,
    /// One counter that starts again at every multiple of the window.
    FixedWindow,
    /// A bucket that drains steadily; admits what fits into it.
    LeakyBucket,
    /// One counter per day or month of a time zone.
    Calendar,
}

/// A name that is no algorithm's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown algorithm {0:?}: expected one of {names}", names = Algorithm::ALL.map(Algorithm::name).join(", "))]
pub struct UnknownAlgorithm(pub String);

/// One algorithm's arithmetic. `Default` is the state of a subject never seen.
pub trait Meter {
    /// What is remembered of a subject.
    type State: Default;

    /// The most a subject can have at once, and so the largest cost that can be admitted.
    fn capacity(&self) -> u64;

    /// Takes `cost` if it fits; otherwise takes nothing and says `false`.
    fn admit(&self, state: &mut Self::State, cost: Cost, now: Timestamp) -> bool;

    /// Whether [`admit`](Self::admit) would say yes.
    fn admits(&self, state: &Self::State, cost: Cost, now: Timestamp) -> bool;

    /// Goes on under this limit from `now`, if the state was left by another.
    fn adopt(&self, _state: &mut Self::State, _now: Timestamp) {}

    /// Returns up to `cost` units taken at `taken`.
    fn give_back(&self, state: &mut Self::State, cost: Cost, taken: Taken, now: Timestamp);

    /// What is left now.
    fn remaining(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Microseconds until nothing is missing any more.
    fn reset_after(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Microseconds until `cost` is admitted if nothing else happens; 0 when it is now.
    fn retry_after(&self, state: &Self::State, cost: Cost, now: Timestamp) -> u64;
}

/// When units that are given back were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// At this time: a reservation remembers.
    At(Timestamp),
    /// Nobody remembers: a refund.
    Sometime,
}

// === impl Algorithm ===

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 6] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingWindowCounter,
        Self::FixedWindow,
        Self::LeakyBucket,
        Self::Calendar,
    ];

    /// The name in configuration, APIs and store keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingWindowCounter => "sliding_window_counter",
            Self::FixedWindow => "fixed_window",
            Self::LeakyBucket => "leaky_bucket",
            Self::Calendar => "calendar",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Reads a name in either case; `sliding_window_log` is another name of `sliding_window`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.eq_ignore_ascii_case("sliding_window_log") {
            return Ok(Self::SlidingWindow);
        }
        Self::ALL
            .into_iter()
            .find(|algorithm| name.eq_ignore_ascii_case(algorithm.name()))
            .ok_or_else(|| UnknownAlgorithm(name.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_in_either_case() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.name().to_uppercase().parse(), Ok(algorithm));
        }
        assert_eq!("SLIDING_WINDOW_LOG".parse(), Ok(Algorithm::SlidingWindow));
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = "gcra".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("\"gcra\"") && error.contains("leaky_bucket"), "{error}");
    }
}
