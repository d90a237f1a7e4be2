//! Subjects that this process has seen lately, in 8 MB.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use headgate::Key;

/// Subjects that this process has seen lately.
///
/// A table of eight places to a row. A place holds half of a subject's hash and the second at which it
/// is forgotten; the other half chooses the row.
pub(super) struct Seen {
    places: Box<[AtomicU64]>,
    hashes: RandomState,
}

const PLACES: usize = 1 << 20;
const ROW: usize = 8;

impl Seen {
    pub(super) fn new() -> Self {
        let places = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        Self { places, hashes: RandomState::new() }
    }

    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        key.parts().iter().for_each(|part| hasher.write(part.as_bytes()));
        hasher.finish()
    }

    /// Whether `subject` was seen; if so, it is remembered for `life` from now. Times are in microseconds
    /// of a steady clock.
    pub(super) fn knows(&self, subject: u64, steady: u64, life: u64) -> bool {
        let now = seconds(steady);
        let known = self.row(subject).iter().find(|place| {
            let held = place.load(Relaxed);
            is_of(held, subject) && forgotten_at(held) > now
        });
        let Some(place) = known else { return false };
        let fresh = held(subject, steady, life);
        // Mostly the same second: a load keeps busy subjects free of shared writes.
        if place.load(Relaxed) != fresh {
            place.store(fresh, Relaxed);
        }
        true
    }

    /// Remembers `subject` for `life`; says whether there was a place.
    pub(super) fn remember(&self, subject: u64, steady: u64, life: u64) -> bool {
        let now = seconds(steady);
        let fresh = held(subject, steady, life);
        self.row(subject).iter().any(|place| {
            let old = place.load(Relaxed);
            (forgotten_at(old) <= now || is_of(old, subject))
                && place.compare_exchange(old, fresh, Relaxed, Relaxed).is_ok()
        })
    }

    fn row(&self, subject: u64) -> &[AtomicU64] {
        let first = (subject as u32 as usize * ROW) & (PLACES - 1);
        &self.places[first..first + ROW]
    }
}

/// The second after this many microseconds.
fn seconds(micros: u64) -> u32 {
    u32::try_from(micros / 1_000_000 + 1).unwrap_or(u32::MAX)
}

fn held(subject: u64, steady: u64, life: u64) -> u64 {
    subject >> 32 << 32 | u64::from(seconds(steady.saturating_add(life)).saturating_add(1))
}

const fn is_of(held: u64, subject: u64) -> bool {
    held >> 32 == subject >> 32
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn forgotten_at(held: u64) -> u32 {
    held as u32
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("places", &self.places.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn knows_a_subject_for_its_life_and_from_each_time_it_is_seen() {
        let seen = Seen::new();
        let [one, other] = ["one", "other"].map(|name| seen.hash(Key::new(name).unwrap()));
        assert!(!seen.knows(one, 0, 10 * SECOND));
        assert!(seen.remember(one, 0, 10 * SECOND));
        assert!(seen.knows(one, 9 * SECOND, 10 * SECOND));
        assert!(!seen.knows(other, 9 * SECOND, 10 * SECOND));
        assert!(seen.knows(one, 18 * SECOND, 10 * SECOND));
        assert!(!seen.knows(one, 31 * SECOND, 10 * SECOND));
    }

    #[test]
    fn a_full_row_takes_nobody_until_somebody_is_forgotten() {
        let seen = Seen::new();
        let subject = |i: u64| i << 32 | 7;
        for i in 0..ROW as u64 {
            assert!(seen.remember(subject(i), 0, SECOND));
        }
        assert!(!seen.remember(subject(100), 0, SECOND));
        assert!(seen.remember(subject(100), 5 * SECOND, SECOND));
    }
}
