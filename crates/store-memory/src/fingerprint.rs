//! Subjects as 64-bit numbers that nobody outside can predict.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    num::NonZeroU64,
};

use headgate::{Key, Limit, algorithm::Period, limit::Rule};
use siphasher::sip::SipHasher13;

use crate::Numbered;

/// A keyed hash of a key, its algorithm and its window.
///
/// Two subjects share one with probability 2^-64; the key of the hash (`SipHash`)
/// is secret and new in every process, so that nobody can look for two that do.
/// The limit's number is no part of it: a changed limit finds the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint(NonZeroU64);

/// Makes fingerprints under one secret.
pub(crate) struct Fingerprints {
    secret: (u64, u64),
    /// Subjects by number have a secret of their own, and so nothing in common with those by key.
    secret_of_numbers: (u64, u64),
}

impl Fingerprint {
    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Fingerprints {
    #[inline]
    pub(crate) fn of(&self, key: Key<'_>, limit: &Limit) -> Fingerprint {
        // The shape goes into the key of the hash: hashing it as well would cost another round.
        let mut hasher = SipHasher13::new_with_keys(self.secret.0 ^ shape(limit), self.secret.1);
        let hash = match key.parts() {
            ["", subject, ""] => hasher.hash(subject.as_bytes()),
            parts => {
                for part in parts {
                    hasher.write(part.as_bytes());
                }
                hasher.finish()
            }
        };
        Fingerprint::from(hash)
    }

    #[inline]
    pub(crate) fn of_number(&self, subject: Numbered, limit: &Limit) -> Fingerprint {
        let (first, second) = self.secret_of_numbers;
        let hasher = SipHasher13::new_with_keys(first ^ shape(limit), second);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&subject.space.to_le_bytes());
        bytes[8..].copy_from_slice(&subject.number.to_le_bytes());
        Fingerprint::from(hasher.hash(&bytes))
    }
}

impl From<u64> for Fingerprint {
    #[inline]
    fn from(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

impl Default for Fingerprints {
    /// Under a secret of its own, from the operating system's randomness.
    fn default() -> Self {
        let random = RandomState::new();
        Self {
            secret: (random.hash_one(0_u8), random.hash_one(1_u8)),
            secret_of_numbers: (random.hash_one(2_u8), random.hash_one(3_u8)),
        }
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
