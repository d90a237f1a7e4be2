//! Subjects as 64-bit hashes that clients cannot predict.

use std::{collections::hash_map::RandomState, hash::BuildHasher, num::NonZeroU64};

use headgate::{
    Key, Limit,
    algorithm::{Bucket, Period},
    limit::Parameters,
};
use polymur_hash::PolymurHash;

use crate::NumericKey;

/// A keyed hash of a key, its algorithm and its window.
///
/// The hashes are universal: for any two subjects that are chosen without knowing the secret, at
/// most n in 2^60 secrets give both the same fingerprint, where n is the length of the longer one
/// in bytes (`PolymurHash`), or one in 2^63 for numeric keys (`MultiplyShift`). Every store has a
/// new secret and nothing that depends on it leaves the store, so that collisions cannot be
/// searched for. The number of units is not part of it: a changed limit finds the same state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Fingerprint(NonZeroU64);

/// The algorithm and the window as one number, which determine the form of a state. It has fewer
/// than 62 bits, because a hash adds it to a number of 61.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape(u64);

/// Computes fingerprints under one secret.
pub(crate) struct Fingerprints {
    keys: PolymurHash,
    /// Numeric keys have a secret of their own, independent of that of text keys.
    numbers: MultiplyShift,
}

/// The upper half of a sum of 128-bit products, one for each word: strongly universal if the
/// factors are random (Dietzfelbinger), for a third of the cost of hashing the same bytes as text.
struct MultiplyShift {
    factors: [u128; 3],
    offset: u128,
}

impl Fingerprint {
    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

impl Fingerprints {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "calls are a fifth of the cost of a decision")]
    pub(crate) fn of(&self, key: Key<'_>, shape: Shape) -> Fingerprint {
        if key.space().is_empty() {
            return Fingerprint::from(self.keys.hash_with_tweak(key.subject(), shape.0));
        }
        self.of_parts(key.parts(), shape)
    }

    /// Hash of a key's text, which does not depend on its parts.
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
    pub(crate) fn of_number(&self, subject: NumericKey, shape: Shape) -> Fingerprint {
        Fingerprint::from(self.numbers.hash([subject.space, subject.number, shape.0]))
    }
}

impl MultiplyShift {
    #[inline]
    fn hash(&self, words: [u64; 3]) -> u64 {
        let products = self.factors.into_iter().zip(words);
        let sum = products.fold(self.offset, |sum, (factor, word)| {
            sum.wrapping_add(factor.wrapping_mul(u128::from(word)))
        });
        scatter((sum >> 64) as u64)
    }
}

/// Breaks up the even steps between the products of consecutive numbers, which would cluster in a
/// table. It is a bijection.
#[inline]
const fn scatter(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash ^ (hash >> 29)
}

impl From<u64> for Fingerprint {
    #[inline]
    fn from(hash: u64) -> Self {
        Self(NonZeroU64::new(hash).unwrap_or(NonZeroU64::MIN))
    }
}

impl Default for Fingerprints {
    /// With a new secret, from the operating system's randomness.
    fn default() -> Self {
        let random = RandomState::new();
        let secret = |n: u8| [random.hash_one([0, n]), random.hash_one([1, n])];
        let wide =
            |n: u8| secret(n).map(u128::from).into_iter().fold(0, |sum, half| sum << 64 | half);
        let [low, high] = secret(0);
        let numbers = MultiplyShift { factors: [1, 2, 3].map(wide), offset: wide(4) };
        Self { keys: PolymurHash::from_u64x2_seed(low, high), numbers }
    }
}

impl Shape {
    #[inline]
    pub(crate) const fn of(limit: &Limit) -> Self {
        match limit.parameters() {
            Parameters::TokenBucket(bucket) => Self::new(0, bucket.window()),
            Parameters::LeakyBucket(bucket) => Self::new(1, bucket.window()),
            Parameters::SlidingWindow(window) => Self::new(2, window.window()),
            Parameters::SlidingWindowCounter(window) => Self::new(3, window.window()),
            Parameters::FixedWindow(window) => Self::new(4, window.window()),
            Parameters::Calendar(calendar) => match calendar.period() {
                Period::Day => Self::new(5, 0),
                Period::Month => Self::new(6, 0),
            },
            // Holders stay when the longest lease changes.
            Parameters::Concurrency(_) => Self::new(7, 0),
        }
    }

    /// The bucket and its shape, if the limit is one: almost all are.
    #[inline]
    pub(crate) const fn of_bucket(limit: &Limit) -> Option<(&Bucket, Self)> {
        match limit.parameters() {
            Parameters::TokenBucket(bucket) => Some((bucket, Self::new(0, bucket.window()))),
            Parameters::LeakyBucket(bucket) => Some((bucket, Self::new(1, bucket.window()))),
            _ => None,
        }
    }

    const fn new(algorithm: u64, window: u64) -> Self {
        Self(window << 3 | algorithm)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn scatter_is_a_bijection() {
        /// The inverse.
        fn gather(mut hash: u64) -> u64 {
            hash ^= hash >> 29 ^ hash >> 58;
            hash = hash.wrapping_mul(0xf1de_83e1_9937_733d);
            hash ^ hash >> 32
        }
        for i in 0..10_000_u64 {
            let hash = i.wrapping_mul(0xd134_2543_de82_ef95).rotate_left(i as u32);
            assert_eq!(gather(scatter(hash)), hash);
        }
    }

    #[test]
    fn fingerprints_of_consecutive_numbers_are_spread_evenly() {
        let fingerprints = Fingerprints::default();
        let mut seen = HashSet::new();
        let mut low_bits = [0_u32; 64];
        for space in 0..4 {
            for number in 0..25_000 {
                let subject = NumericKey { space, number };
                let fingerprint = fingerprints.of_number(subject, Shape(8));
                seen.insert(fingerprint);
                low_bits[fingerprint.get() as usize % 64] += 1;
            }
        }
        assert_eq!(seen.len(), 100_000);
        // 1,562 each, if they are spread evenly over the shards.
        assert!(low_bits.iter().all(|count| (800..2_400).contains(count)), "{low_bits:?}");
        assert_ne!(
            fingerprints.of_number(NumericKey { space: 1, number: 1 }, Shape(1)),
            fingerprints.of_number(NumericKey { space: 1, number: 1 }, Shape(2)),
        );
    }
}
