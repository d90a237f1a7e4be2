//! A fixed-size table of denials.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A set-associative table: a fingerprint selects a set of [`WAYS`](Self::WAYS) slots, and entries
/// that do not fit there are evicted. Nothing is moved, and a shard's slots are allocated with its
/// first denial.
pub(super) struct Table {
    shards: Box<[Mutex<Vec<Entry>>]>,
}

/// One denial. It is valid while `until` is in the future, so an empty slot is an expired one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Hash of the key.
    pub(super) fingerprint: u64,
    /// Hash of the limit.
    pub(super) limit: u64,
    /// Denied cost; larger costs are denied as well.
    pub(super) cost: u64,
    /// Time of expiry, by the local steady clock.
    pub(super) until: u64,
    /// Time at which all units are available again, by the same clock.
    pub(super) reset: u64,
    /// Time of the decision, by the store's clock.
    pub(super) at: u64,
}

impl Table {
    const SHARDS: usize = 64;
    const SETS: usize = 128;
    const WAYS: usize = 8;

    pub(super) const SLOTS: usize = Self::SHARDS * Self::SETS * Self::WAYS;

    pub(super) fn new() -> Self {
        Self { shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Replaces entries that `entry` makes redundant, or the one that expires first and may have
    /// expired already. Drops `entry` if all others of its set expire later.
    pub(super) fn insert(&self, entry: Entry) {
        let mut shard = self.shard(entry.fingerprint);
        if shard.is_empty() {
            shard.resize(Self::SETS * Self::WAYS, Entry::default());
        }
        let set = &mut shard[Self::set(entry.fingerprint)];
        for redundant in set.iter_mut().filter(|held| entry.renews(held) || entry.covers(held)) {
            *redundant = Entry::default();
        }
        let Some(first) = set.iter_mut().min_by_key(|held| held.until) else { return };
        if first.until < entry.until {
            *first = entry;
        }
    }

    /// The matching entry of this fingerprint that expires last.
    pub(super) fn longest(
        &self,
        fingerprint: u64,
        now: u64,
        fits: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        let shard = self.shard(fingerprint);
        let set = shard.get(Self::set(fingerprint))?;
        let held = set.iter().filter(|held| held.fingerprint == fingerprint && held.until > now);
        held.filter(|held| fits(held)).max_by_key(|held| held.until).copied()
    }

    /// Removes the matching entries of this fingerprint.
    pub(super) fn remove(&self, fingerprint: u64, fits: impl Fn(&Entry) -> bool) {
        let mut shard = self.shard(fingerprint);
        let Some(set) = shard.get_mut(Self::set(fingerprint)) else { return };
        for held in set.iter_mut().filter(|held| held.fingerprint == fingerprint) {
            if fits(held) {
                *held = Entry::default();
            }
        }
    }

    /// Entries stay valid if another thread panics.
    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, Vec<Entry>> {
        let shard = &self.shards[fingerprint as usize % Self::SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn set(fingerprint: u64) -> std::ops::Range<usize> {
        let first = (fingerprint as usize / Self::SHARDS % Self::SETS) * Self::WAYS;
        first..first + Self::WAYS
    }
}

impl Entry {
    /// Returns `true` if this is a newer answer to the same check.
    const fn renews(&self, held: &Self) -> bool {
        self.is_like(held) && self.cost == held.cost && self.at >= held.at
    }

    /// Returns `true` if this denial implies `held`.
    const fn covers(&self, held: &Self) -> bool {
        self.is_like(held) && self.cost <= held.cost && self.until >= held.until
    }

    const fn is_like(&self, held: &Self) -> bool {
        self.fingerprint == held.fingerprint && self.limit == held.limit
    }
}
