//! Keys that this process has used recently, in 8 MB.

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use headgate::Key;

/// Keys that this process has used recently.
///
/// A set-associative table with eight slots per row. A slot holds the upper half of the hash of a
/// key and the second when it expires; the lower half selects the row.
pub(super) struct RecentKeys {
    slots: Box<[AtomicU64]>,
    hashes: RandomState,
}

const SLOTS: usize = 1 << 20;
const ROW: usize = 8;

impl RecentKeys {
    pub(super) fn new() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { slots, hashes: RandomState::new() }
    }

    pub(super) fn hash(&self, key: Key<'_>) -> u64 {
        let mut hasher = self.hashes.build_hasher();
        key.parts().iter().for_each(|part| hasher.write(part.as_bytes()));
        hasher.finish()
    }

    /// Returns `true` if the key with this hash is present; if so, extends it by `ttl` from now.
    /// Times are in microseconds of a steady clock.
    pub(super) fn contains(&self, hash: u64, steady: u64, ttl: u64) -> bool {
        let now = seconds(steady);
        let known = self.row(hash).iter().find(|slot| {
            let held = slot.load(Relaxed);
            is_of(held, hash) && expires_at(held) > now
        });
        let Some(slot) = known else { return false };
        let fresh = held(hash, steady, ttl);
        // Usually the same second: skip the write, which other cores would have to see.
        if slot.load(Relaxed) != fresh {
            slot.store(fresh, Relaxed);
        }
        true
    }

    /// Inserts the key with this hash for `ttl`. Returns `true` if there was a slot.
    pub(super) fn insert(&self, hash: u64, steady: u64, ttl: u64) -> bool {
        let now = seconds(steady);
        let fresh = held(hash, steady, ttl);
        self.row(hash).iter().any(|slot| {
            let old = slot.load(Relaxed);
            (expires_at(old) <= now || is_of(old, hash))
                && slot.compare_exchange(old, fresh, Relaxed, Relaxed).is_ok()
        })
    }

    fn row(&self, hash: u64) -> &[AtomicU64] {
        let first = (hash as u32 as usize * ROW) & (SLOTS - 1);
        &self.slots[first..first + ROW]
    }
}

/// Whole seconds, rounded up past `micros`.
fn seconds(micros: u64) -> u32 {
    u32::try_from(micros / 1_000_000 + 1).unwrap_or(u32::MAX)
}

fn held(hash: u64, steady: u64, ttl: u64) -> u64 {
    hash >> 32 << 32 | u64::from(seconds(steady.saturating_add(ttl)).saturating_add(1))
}

const fn is_of(held: u64, hash: u64) -> bool {
    held >> 32 == hash >> 32
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
const fn expires_at(held: u64) -> u32 {
    held as u32
}

impl fmt::Debug for RecentKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentKeys").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_key_is_present_for_its_ttl_after_each_use() {
        let recent = RecentKeys::new();
        let [one, other] = ["one", "other"].map(|name| recent.hash(Key::new(name).unwrap()));
        assert!(!recent.contains(one, 0, 10 * SECOND));
        assert!(recent.insert(one, 0, 10 * SECOND));
        assert!(recent.contains(one, 9 * SECOND, 10 * SECOND));
        assert!(!recent.contains(other, 9 * SECOND, 10 * SECOND));
        assert!(recent.contains(one, 18 * SECOND, 10 * SECOND));
        assert!(!recent.contains(one, 31 * SECOND, 10 * SECOND));
    }

    #[test]
    fn a_full_row_takes_no_key_until_one_expires() {
        let recent = RecentKeys::new();
        let hash = |i: u64| i << 32 | 7;
        for i in 0..ROW as u64 {
            assert!(recent.insert(hash(i), 0, SECOND));
        }
        assert!(!recent.insert(hash(100), 0, SECOND));
        assert!(recent.insert(hash(100), 5 * SECOND, SECOND));
    }
}
