//! Subjects as 128-bit hashes that clients cannot predict.

use std::{collections::hash_map::RandomState, hash::BuildHasher};

use headgate::Key;
use polymur_hash::PolymurHash;

/// Keyed hash of a key. It has 128 bits, because two subjects must not share what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(pub(crate) u64, pub(crate) u64);

/// Computes fingerprints under one secret.
pub(crate) struct Fingerprints([PolymurHash; 2]);

impl Fingerprints {
    /// With a new secret, from the operating system's randomness.
    pub(crate) fn random() -> Self {
        let random = RandomState::new();
        Self::new(|n| random.hash_one(n))
    }

    /// With a secret that everyone knows.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::new(|n| (seed ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31))
    }

    fn new(secret: impl Fn(u64) -> u64) -> Self {
        Self([(1, 2), (3, 4)].map(|(a, b)| PolymurHash::from_u64x2_seed(secret(a), secret(b))))
    }

    pub(crate) fn of(&self, key: Key<'_>) -> Fingerprint {
        let parts = key.parts();
        let mut bytes = [0; 128];
        let mut length = 0;
        for part in parts {
            let Some(place) = bytes.get_mut(length..length + part.len()) else {
                return self.of_bytes(parts.concat().as_bytes());
            };
            place.copy_from_slice(part.as_bytes());
            length += part.len();
        }
        self.of_bytes(&bytes[..length])
    }

    fn of_bytes(&self, bytes: &[u8]) -> Fingerprint {
        let [first, second] = &self.0;
        Fingerprint(first.hash(bytes), second.hash(bytes))
    }
}

impl std::fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fingerprints")
    }
}

#[cfg(test)]
mod tests {
    use headgate::KeySpace;

    use super::*;

    #[test]
    fn a_fingerprint_depends_on_the_text_alone() {
        let fingerprints = Fingerprints::random();
        let of = |prefix: &str, subject: &str| {
            let space = KeySpace::new(prefix, "");
            fingerprints.of(Key::new(subject).unwrap().within(&space))
        };
        let long = "x".repeat(300);
        assert_eq!(of("a", "bc"), of("ab", "c"));
        assert_eq!(of("a", &long), of("ax", &long[1..]));
        assert_ne!(of("a", "b"), of("a", "c"));
        assert_ne!(of("a", &long), of("b", &long));
    }

    #[test]
    fn the_halves_of_a_fingerprint_are_independent_whatever_the_seed() {
        for seed in [0, 1, 7, 8, u64::MAX] {
            let Fingerprint(first, second) = Fingerprints::seeded(seed).of(Key::new("a").unwrap());
            assert_ne!(first, second, "{seed}");
        }
    }
}
