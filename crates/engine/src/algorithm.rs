//! Each algorithm as integer arithmetic on (limit, state, cost, now).
//!
//! The arithmetic is exact: nothing is rounded, so a store that keeps the same integers gives the
//! same answers. It assumes that `now` is never earlier than a state's last change; stores make
//! sure of that.

pub mod bucket;
pub mod calendar;
pub mod concurrency;
pub mod fixed_window;
pub mod sliding_window;
pub mod sliding_window_counter;

use std::{fmt, str::FromStr};

use thiserror::Error;

pub use bucket::Bucket;
pub use calendar::{Calendar, Period};
pub use concurrency::Concurrency;
pub use fixed_window::FixedWindow;
pub use sliding_window::SlidingWindow;
pub use sliding_window_counter::SlidingWindowCounter;

use crate::{Cost, Timestamp};

/// The name of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A bucket that refills steadily and admits bursts up to its capacity.
    TokenBucket,
    /// An exact log: never more than the limit in any window.
    SlidingWindow,
    /// Two counters that approximate the log in constant space.
    SlidingWindowCounter,
    /// One counter that restarts at every multiple of the window.
    FixedWindow,
    /// A bucket that drains steadily and admits what fits into it.
    LeakyBucket,
    /// One counter per day or month of a time zone.
    Calendar,
    /// Places that are held under leases: at most the limit at a time.
    Concurrency,
}

/// Error for an unknown algorithm name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown algorithm {0:?}: expected one of {names}", names = Algorithm::ALL.map(Algorithm::name).join(", "))]
pub struct UnknownAlgorithm(pub String);

/// The arithmetic of one algorithm. `State::default()` is the state of a new subject.
///
/// This trait is sealed: [`Limit`](crate::Limit) knows every algorithm.
pub trait Meter: sealed::Sealed {
    /// The state of a subject.
    type State: Default;

    /// Maximum number of units available at once, and so the largest cost that can be admitted.
    fn capacity(&self) -> u64;

    /// Takes `cost` if it fits. Returns `true` if it did.
    fn admit(&self, state: &mut Self::State, cost: Cost, now: Timestamp) -> bool;

    /// Returns `true` if [`admit`](Self::admit) would take `cost`.
    fn admits(&self, state: &Self::State, cost: Cost, now: Timestamp) -> bool;

    /// Converts a state that was written under another limit, so that this limit applies from
    /// `now`.
    fn adopt(&self, _state: &mut Self::State, _now: Timestamp) {}

    /// Takes `cost` at `at`, whether it fits or not: it was admitted before. `at` is not before the
    /// state's last change.
    fn record(&self, state: &mut Self::State, cost: Cost, at: Timestamp);

    /// Returns up to `cost` units that were taken at `taken`, as far as they still count: see
    /// [`TakenAt`].
    fn give_back(&self, state: &mut Self::State, cost: Cost, taken: TakenAt, now: Timestamp);

    /// Units available now.
    fn remaining(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Units that an overdraft can take now: those available, and a debt of up to
    /// [`MAX_DEBT`](crate::Limit::MAX_DEBT) times the limit.
    fn room(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Units taken beyond the limit, rounded up.
    fn debt(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Microseconds until all units are available.
    fn reset_after(&self, state: &Self::State, now: Timestamp) -> u64;

    /// Microseconds until `cost` is admitted if nothing else is taken; 0 if it is now.
    fn retry_after(&self, state: &Self::State, cost: Cost, now: Timestamp) -> u64;
}

/// The time at which returned units were taken. Units that count no more are not returned: the
/// limit has given them back already, and they may have been taken again.
///
/// | algorithm | units taken at a known time return |
/// |---|---|
/// | token and leaky bucket | less what has refilled since that time, at the bucket's rate |
/// | sliding window | while they are in the window: the newest units that are not later |
/// | sliding window counter | to the counter of their window, while that is the current or the previous one |
/// | fixed window, calendar | until their window ends |
/// | concurrency | never: a place is free when its lease is released or ends |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenAt {
    /// This time.
    Known(Timestamp),
    /// Not known: units that count now return, whenever they were taken. If those that were meant
    /// have been given back by the limit already, others return in their place, and the limit
    /// admits more than it should.
    Unknown,
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Bucket {}
    impl Sealed for super::Calendar {}
    impl Sealed for super::Concurrency {}
    impl Sealed for super::FixedWindow {}
    impl Sealed for super::SlidingWindow {}
    impl Sealed for super::SlidingWindowCounter {}
}

// === impl Algorithm ===

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 7] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingWindowCounter,
        Self::FixedWindow,
        Self::LeakyBucket,
        Self::Calendar,
        Self::Concurrency,
    ];

    /// The algorithms that count units over time: all but concurrency.
    pub const RATES: [Self; 6] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingWindowCounter,
        Self::FixedWindow,
        Self::LeakyBucket,
        Self::Calendar,
    ];

    /// Name used in configuration, APIs and store keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token_bucket",
            Self::SlidingWindow => "sliding_window",
            Self::SlidingWindowCounter => "sliding_window_counter",
            Self::FixedWindow => "fixed_window",
            Self::LeakyBucket => "leaky_bucket",
            Self::Calendar => "calendar",
            Self::Concurrency => "concurrency",
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

    /// Parses a name, ignoring case. `sliding_window_log` is an alias of `sliding_window`.
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
    fn names_parse_in_either_case() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.name().to_uppercase().parse(), Ok(algorithm));
        }
        assert_eq!("SLIDING_WINDOW_LOG".parse(), Ok(Algorithm::SlidingWindow));
    }

    #[test]
    fn an_unknown_name_lists_the_known_names() {
        let error = "gcra".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("\"gcra\"") && error.contains("leaky_bucket"), "{error}");
    }
}
