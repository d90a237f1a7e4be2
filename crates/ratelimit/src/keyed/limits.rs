//! The limits of keys: a default for each algorithm, and overrides by prefix.

use std::{collections::HashMap, time::Duration};

use headgate::{FailMode, Limit, limit::Parameters};

use super::{KeyedAlgorithm, PerAlgorithm};

/// The limits of all keys under all algorithms. Immutable.
#[derive(Clone, Debug)]
pub struct KeyedLimits {
    tables: PerAlgorithm<Table>,
    fail_mode: FailMode,
}

/// A limit and its window in seconds, computed in advance.
#[derive(Clone, Debug)]
pub struct KeyedLimit {
    limit: Limit,
    window_seconds: u64,
}

#[derive(Clone, Debug)]
struct Table {
    default: KeyedLimit,
    prefixes: HashMap<Box<str>, KeyedLimit>,
    /// Lengths of the prefixes, longest first.
    prefix_lengths: Vec<usize>,
}

// === impl KeyedLimits ===

impl KeyedLimits {
    /// Creates limits that are the same for all keys; `fail_mode` decides while the store is
    /// unavailable.
    pub fn new(fail_mode: FailMode, defaults: PerAlgorithm<Limit>) -> Self {
        let table = |limit: Limit| Table {
            default: limit.into(),
            prefixes: HashMap::new(),
            prefix_lengths: Vec::new(),
        };
        Self { tables: defaults.map(table), fail_mode }
    }

    /// Overrides the limit for keys that begin with `prefix` under one algorithm.
    #[must_use]
    pub fn with_override(mut self, algorithm: KeyedAlgorithm, prefix: &str, limit: Limit) -> Self {
        let table = self.tables.get_mut(algorithm);
        table.prefixes.insert(prefix.into(), limit.into());
        let lengths = table.prefixes.keys().map(|prefix| prefix.len());
        table.prefix_lengths = lengths.collect();
        table.prefix_lengths.sort_unstable_by(|a, b| b.cmp(a));
        table.prefix_lengths.dedup();
        self
    }

    /// Returns the limit of `key`: that of its longest prefix, or the default.
    pub fn of(&self, algorithm: KeyedAlgorithm, key: &str) -> &KeyedLimit {
        let Table { default, prefixes, prefix_lengths } = self.tables.get(algorithm);
        let candidates = prefix_lengths.iter().filter_map(|length| key.get(..*length));
        let mut found = candidates.filter_map(|prefix| prefixes.get(prefix));
        found.next().unwrap_or(default)
    }

    /// Returns the failure mode, which decides checks while the store is unavailable.
    pub const fn fail_mode(&self) -> FailMode {
        self.fail_mode
    }
}

// === impl KeyedLimit ===

impl KeyedLimit {
    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the window in seconds, or the time in which a bucket refills.
    pub const fn window_seconds(&self) -> u64 {
        self.window_seconds
    }
}

impl From<Limit> for KeyedLimit {
    fn from(limit: Limit) -> Self {
        let micros = match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => bucket.fill_time(),
            _ => limit.window().unwrap_or(Duration::ZERO).as_micros() as u64,
        };
        Self { limit, window_seconds: micros.div_ceil(1_000_000) }
    }
}

#[cfg(test)]
mod tests {
    use headgate::LimitError;

    use super::*;

    fn limits() -> Result<KeyedLimits, LimitError> {
        let defaults = PerAlgorithm::try_from_fn(|algorithm| match algorithm {
            KeyedAlgorithm::TokenBucket => {
                Limit::token_bucket(7, Duration::from_secs(1))?.with_burst(100)
            }
            other => Limit::new(other.engine(), 100, Duration::from_secs(60)),
        });
        Ok(KeyedLimits::new(FailMode::Open, defaults?))
    }

    #[test]
    fn the_longest_prefix_decides_per_algorithm() {
        let some = |most| Limit::fixed_window(most, Duration::from_secs(1)).unwrap();
        let limits = limits()
            .unwrap()
            .with_override(KeyedAlgorithm::FixedWindow, "api_key:", some(5))
            .with_override(KeyedAlgorithm::FixedWindow, "api_key:gold:", some(50))
            .with_override(KeyedAlgorithm::FixedWindow, "鍵", some(3));
        let most = |key| limits.of(KeyedAlgorithm::FixedWindow, key).limit().capacity();
        let expected = [
            ("api_key:1", 5),
            ("api_key:gold:1", 50),
            ("api_key:gold", 5),
            ("api_key:", 5),
            ("api_key", 100),
            ("user:api_key:1", 100),
            ("鍵1", 3),
            ("錠1", 100),
            ("é", 100),
        ];
        for (key, expected) in expected {
            assert_eq!(most(key), expected, "{key}");
        }
        let other = limits.of(KeyedAlgorithm::SlidingWindow, "api_key:1");
        assert_eq!(other.limit().capacity(), 100);
    }

    #[test]
    fn the_window_of_a_bucket_is_its_refill_time() {
        let limits = limits().unwrap();
        let window = |algorithm| limits.of(algorithm, "u").window_seconds();
        assert_eq!(window(KeyedAlgorithm::TokenBucket), 15);
        assert_eq!(window(KeyedAlgorithm::SlidingWindow), 60);
    }
}
