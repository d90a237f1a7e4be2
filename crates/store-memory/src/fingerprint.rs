//! Subjects as 64-bit numbers that nobody outside can predict.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    num::NonZeroU64,
};

use headgate::{Key, Limit, algorithm::Period, limit::Rule};

/// A keyed hash of a key, its algorithm and its window.
///
/// Two subjects share one with probability 2^-64; the key of the hash (`SipHash`)
/// is secret and new in every process, so that nobody can look for two that do.
/// The limit's number is no part of it: a changed limit finds the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint(NonZeroU64);

/// Makes fingerprints under one secret.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints(RandomState);

impl Fingerprint {
    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Fingerprints {
    #[inline]
    pub(crate) fn of(&self, key: Key<'_>, limit: &Limit) -> Fingerprint {
        let mut hasher = self.0.build_hasher();
        for part in key.parts() {
            if !part.is_empty() {
                hasher.write(part.as_bytes());
            }
        }
        hasher.write_u64(shape(limit));
        Fingerprint(NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN))
    }
}

/// The algorithm and the window as one number: the shape of the state they need.
pub(crate) const fn shape(limit: &Limit) -> u64 {
    let (tag, window) = match limit.rule() {
        Rule::TokenBucket(bucket) => (0, bucket.window()),
        Rule::LeakyBucket(bucket) => (1, bucket.window()),
        Rule::SlidingWindow(window) => (2, window.window()),
        Rule::SlidingWindowCounter(window) => (3, window.window()),
        Rule::FixedWindow(window) => (4, window.window()),
        Rule::Calendar(calendar) => match calendar.period() {
            Period::Day => (5, 0),
            Period::Month => (6, 0),
        },
    };
    window << 3 | tag
}
