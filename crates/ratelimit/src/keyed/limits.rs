//! The limits of keys: a default for each algorithm, and overrides by prefix.

use std::{collections::HashMap, time::Duration};

use headgate::{Extra, FailMode, LeasePolicy, Limit, limit::Parameters};

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
    extra: Option<Extra>,
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
    pub fn new(fail_mode: FailMode, defaults: PerAlgorithm<KeyedLimit>) -> Self {
        let table = |default: KeyedLimit| Table {
            default,
            prefixes: HashMap::new(),
            prefix_lengths: Vec::new(),
        };
        Self { tables: defaults.map(table), fail_mode }
    }

    /// Overrides the limit for keys that begin with `prefix` under one algorithm.
    #[must_use]
    pub fn with_override(
        mut self,
        algorithm: KeyedAlgorithm,
        prefix: &str,
        limit: KeyedLimit,
    ) -> Self {
        let table = self.tables.get_mut(algorithm);
        table.prefixes.insert(prefix.into(), limit);
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
    /// Creates a limit of which `lease` is taken in advance from a shared store. Its hold is
    /// shortened to a tenth of the window.
    pub fn new(limit: Limit, lease: LeasePolicy) -> Self {
        let micros = match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => bucket.fill_time(),
            _ => limit.window().unwrap_or(Duration::ZERO).as_micros() as u64,
        };
        let extra = lease.shortened_to(Duration::from_micros(micros)).extra(&limit);
        Self { limit, window_seconds: micros.div_ceil(1_000_000), extra }
    }

    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the window in seconds, or the time in which a bucket refills.
    pub const fn window_seconds(&self) -> u64 {
        self.window_seconds
    }

    /// Returns the most that a check takes in advance; `None` if that is less than one unit.
    pub const fn extra(&self) -> Option<Extra> {
        self.extra
    }
}

#[cfg(test)]
mod tests {
    use headgate::LimitError;

    use super::*;

    fn leased(limit: Limit) -> KeyedLimit {
        KeyedLimit::new(limit, LeasePolicy::new(10, 1_000).unwrap())
    }

    fn limits() -> Result<KeyedLimits, LimitError> {
        let defaults = PerAlgorithm::try_from_fn(|algorithm| match algorithm {
            KeyedAlgorithm::TokenBucket => {
                Limit::token_bucket(7, Duration::from_secs(1))?.with_burst(100)
            }
            other => Limit::new(other.engine(), 100, Duration::from_secs(60)),
        });
        Ok(KeyedLimits::new(FailMode::Open, defaults?.map(leased)))
    }

    #[test]
    fn the_longest_prefix_decides_per_algorithm() {
        let some = |most| leased(Limit::fixed_window(most, Duration::from_secs(1)).unwrap());
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

    #[test]
    fn a_hold_is_shortened_to_a_tenth_of_the_window() {
        let limits = limits().unwrap();
        let extra = |algorithm| {
            let extra = limits.of(algorithm, "u").extra().unwrap();
            (extra.units(), extra.hold().as_millis())
        };
        assert_eq!(extra(KeyedAlgorithm::FixedWindow), (10, 1_000));
        let short = leased(Limit::fixed_window(100, Duration::from_secs(2)).unwrap());
        assert_eq!(short.extra().unwrap().hold().as_millis(), 200);
        assert!(leased(Limit::fixed_window(9, Duration::from_secs(2)).unwrap()).extra().is_none());
    }
}
