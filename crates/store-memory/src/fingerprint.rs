//! Subjects as 64-bit numbers that nobody outside can predict.

use std::{collections::hash_map::RandomState, hash::BuildHasher, num::NonZeroU64};

use headgate::{
    Key, Limit,
    algorithm::{Bucket, Period},
    limit::Rule,
};
use polymur_hash::PolymurHash;

use crate::Numbered;

/// A keyed hash of a key, its algorithm and its window.
///
/// The hash is a universal one (`PolymurHash`): of any two subjects that somebody thinks of without
/// knowing its secret, at most n in 2^60 secrets give both the same fingerprint, n being the longer
/// one's bytes. The secret is new in every store and nothing that depends on it leaves the store, so
/// that nobody can look for two that collide. The limit's number is no part of it: a changed limit
/// finds the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint(NonZeroU64);

/// The algorithm and the window as one number, the shape of the state they need: of fewer than 62
/// bits, because a hash adds it to a number of 61.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape(u64);

/// Makes fingerprints under one secret.
pub(crate) struct Fingerprints {
    keys: PolymurHash,
    /// Subjects by number have a secret of their own, and so nothing in common with those by key.
    numbers: PolymurHash,
}

impl Fingerprint {
    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Fingerprints {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a fifth of a decision is calling the parts of it")]
    pub(crate) fn of(&self, key: Key<'_>, shape: Shape) -> Fingerprint {
        if key.space().is_empty() {
            return Fingerprint::from(self.keys.hash_with_tweak(key.subject(), shape.0));
        }
        self.of_parts(key.parts(), shape)
    }

    /// A key is its text, however that is divided into parts.
    fn of_parts(&self, parts: [&str; 3], shape: Shape) -> Fingerprint {
        let mut bytes = [0; 128];
        let mut rest = &mut bytes[..];
        for part in parts {
            let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else {
                return Fingerprint::from(self.keys.hash_with_tweak(parts.concat(), shape.0));
            };
            place.copy_from_slice(part.as_bytes());
            rest = behind;
        }
        let unused = rest.len();
        let text = &bytes[..bytes.len() - unused];
        Fingerprint::from(self.keys.hash_with_tweak(text, shape.0))
    }

    #[inline]
    pub(crate) fn of_number(&self, subject: Numbered, shape: Shape) -> Fingerprint {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&subject.space.to_le_bytes());
        bytes[8..].copy_from_slice(&subject.number.to_le_bytes());
        Fingerprint::from(self.numbers.hash_with_tweak(bytes, shape.0))
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
        let secret =
            |n: u8| PolymurHash::from_u64x2_seed(random.hash_one([0, n]), random.hash_one([1, n]));
        Self { keys: secret(0), numbers: secret(1) }
    }
}

impl Shape {
    #[inline]
    pub(crate) const fn of(limit: &Limit) -> Self {
        match limit.rule() {
            Rule::TokenBucket(bucket) => Self::new(0, bucket.window()),
            Rule::LeakyBucket(bucket) => Self::new(1, bucket.window()),
            Rule::SlidingWindow(window) => Self::new(2, window.window()),
            Rule::SlidingWindowCounter(window) => Self::new(3, window.window()),
            Rule::FixedWindow(window) => Self::new(4, window.window()),
            Rule::Calendar(calendar) => match calendar.period() {
                Period::Day => Self::new(5, 0),
                Period::Month => Self::new(6, 0),
            },
        }
    }

    /// That of a bucket, and the bucket: almost everybody has one.
    #[inline]
    pub(crate) const fn of_bucket(limit: &Limit) -> Option<(&Bucket, Self)> {
        match limit.rule() {
            Rule::TokenBucket(bucket) => Some((bucket, Self::new(0, bucket.window()))),
            Rule::LeakyBucket(bucket) => Some((bucket, Self::new(1, bucket.window()))),
            _ => None,
        }
    }

    const fn new(algorithm: u64, window: u64) -> Self {
        Self(window << 3 | algorithm)
    }
}
