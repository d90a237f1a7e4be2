//! The algorithms that callers choose by name.

use std::{fmt, str::FromStr};

use headgate::{Algorithm, KeySpace};
use thiserror::Error;

/// An algorithm for keys without rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyedAlgorithm {
    /// See [`Algorithm::TokenBucket`].
    #[default]
    TokenBucket,
    /// See [`Algorithm::SlidingWindow`].
    SlidingWindow,
    /// See [`Algorithm::SlidingWindowCounter`].
    SlidingWindowCounter,
    /// See [`Algorithm::FixedWindow`].
    FixedWindow,
    /// See [`Algorithm::LeakyBucket`].
    LeakyBucket,
}

/// Unknown algorithm name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown algorithm {0:?}: expected one of {names}", names = KeyedAlgorithm::ALL.map(KeyedAlgorithm::name).join(", "))]
pub struct UnknownKeyedAlgorithm(pub String);

/// One value for each algorithm.
#[derive(Clone, Debug)]
pub struct PerAlgorithm<T>([T; KeyedAlgorithm::ALL.len()]);

// === impl KeyedAlgorithm ===

impl KeyedAlgorithm {
    /// All algorithms, in the order of listings.
    pub const ALL: [Self; 5] = [
        Self::TokenBucket,
        Self::SlidingWindow,
        Self::SlidingWindowCounter,
        Self::FixedWindow,
        Self::LeakyBucket,
    ];

    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "TOKEN_BUCKET",
            Self::SlidingWindow => "SLIDING_WINDOW",
            Self::SlidingWindowCounter => "SLIDING_WINDOW_COUNTER",
            Self::FixedWindow => "FIXED_WINDOW",
            Self::LeakyBucket => "LEAKY_BUCKET",
        }
    }

    /// Returns the engine's algorithm.
    pub const fn engine(self) -> Algorithm {
        match self {
            Self::TokenBucket => Algorithm::TokenBucket,
            Self::SlidingWindow => Algorithm::SlidingWindow,
            Self::SlidingWindowCounter => Algorithm::SlidingWindowCounter,
            Self::FixedWindow => Algorithm::FixedWindow,
            Self::LeakyBucket => Algorithm::LeakyBucket,
        }
    }

    /// Returns the key space: `rate_limiter:{algorithm}:{key}`.
    pub(crate) const fn space(self) -> &'static KeySpace<'static> {
        match self {
            Self::TokenBucket => &const { KeySpace::new("rate_limiter:token_bucket:", "") },
            Self::SlidingWindow => &const { KeySpace::new("rate_limiter:sliding_window:", "") },
            Self::SlidingWindowCounter => {
                &const { KeySpace::new("rate_limiter:sliding_window_counter:", "") }
            }
            Self::FixedWindow => &const { KeySpace::new("rate_limiter:fixed_window:", "") },
            Self::LeakyBucket => &const { KeySpace::new("rate_limiter:leaky_bucket:", "") },
        }
    }
}

impl fmt::Display for KeyedAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KeyedAlgorithm {
    type Err = UnknownKeyedAlgorithm;

    /// Parses a name, ignoring case; `SLIDING_WINDOW_LOG` is an alias of `SLIDING_WINDOW`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name.eq_ignore_ascii_case("SLIDING_WINDOW_LOG") {
            return Ok(Self::SlidingWindow);
        }
        Self::ALL
            .into_iter()
            .find(|algorithm| name.eq_ignore_ascii_case(algorithm.name()))
            .ok_or_else(|| UnknownKeyedAlgorithm(name.chars().take(64).collect()))
    }
}

// === impl PerAlgorithm ===

impl<T> PerAlgorithm<T> {
    /// Calls `of` for each algorithm.
    pub fn from_fn(of: impl FnMut(KeyedAlgorithm) -> T) -> Self {
        Self(KeyedAlgorithm::ALL.map(of))
    }

    /// Calls `of` for each algorithm until one fails.
    pub fn try_from_fn<E>(mut of: impl FnMut(KeyedAlgorithm) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self([
            of(KeyedAlgorithm::TokenBucket)?,
            of(KeyedAlgorithm::SlidingWindow)?,
            of(KeyedAlgorithm::SlidingWindowCounter)?,
            of(KeyedAlgorithm::FixedWindow)?,
            of(KeyedAlgorithm::LeakyBucket)?,
        ]))
    }

    /// Converts each value.
    pub fn map<U>(self, of: impl FnMut(T) -> U) -> PerAlgorithm<U> {
        PerAlgorithm(self.0.map(of))
    }

    /// Returns the value for `algorithm`.
    pub const fn get(&self, algorithm: KeyedAlgorithm) -> &T {
        // Variants are declared in the order of ALL.
        &self.0[algorithm as usize]
    }

    /// Returns the value for `algorithm`, mutably.
    pub const fn get_mut(&mut self, algorithm: KeyedAlgorithm) -> &mut T {
        &mut self.0[algorithm as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_ignoring_case_and_the_log_has_an_alias() {
        for algorithm in KeyedAlgorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.name().to_lowercase().parse(), Ok(algorithm));
            assert_eq!(algorithm.name().to_lowercase(), algorithm.engine().name());
        }
        assert_eq!("sliding_window_Log".parse(), Ok(KeyedAlgorithm::SlidingWindow));
        let error = "CALENDAR".parse::<KeyedAlgorithm>().unwrap_err().to_string();
        assert!(error.contains("\"CALENDAR\"") && error.contains("LEAKY_BUCKET"), "{error}");
    }

    #[test]
    fn each_algorithm_has_its_own_value_and_key_space() {
        let names = PerAlgorithm::from_fn(KeyedAlgorithm::name);
        for algorithm in KeyedAlgorithm::ALL {
            assert_eq!(*names.get(algorithm), algorithm.name());
            let key = headgate::Key::new("user:1").unwrap().within(algorithm.space());
            assert_eq!(key.to_string(), format!("rate_limiter:{}:user:1", algorithm.engine()));
        }
    }
}
