//! A fixed number of denials, by fingerprint.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A set-associative table: a fingerprint names one set of [`WAYS`](Self::WAYS) slots, and whatever
/// does not fit there is forgotten. Nothing is moved, and nothing is allocated but each shard's
/// slots, when the first denial comes to it.
pub(super) struct Table {
    shards: Box<[Mutex<Vec<Entry>>]>,
}

/// One denial. It holds while `until` is later than now, so that an empty slot is one that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Of the key.
    pub(super) fingerprint: u64,
    /// Of the limit.
    pub(super) limit: u64,
    /// What was denied, and with it everything above.
    pub(super) cost: u64,
    /// When it ends, by the local steady clock.
    pub(super) until: u64,
    /// When the subject has everything again, by the same clock.
    pub(super) reset: u64,
    /// When the store gave it, by the store's clock.
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

    /// Puts `entry` in the place of what it makes needless, of one that is over, or of the one that
    /// ends first; not at all if all others of its set end later.
    pub(super) fn insert(&self, entry: Entry, now: u64) {
        let mut shard = self.shard(entry.fingerprint);
        if shard.is_empty() {
            shard.resize(Self::SETS * Self::WAYS, Entry::default());
        }
        let set = &mut shard[Self::set(entry.fingerprint)];
        for needless in set.iter_mut().filter(|held| entry.renews(held) || entry.covers(held)) {
            *needless = Entry::default();
        }
        let Some(first) = set.iter_mut().min_by_key(|held| held.until) else { return };
        if first.until <= now || first.until < entry.until {
            *first = entry;
        }
    }

    /// The entry of this fingerprint that holds longest, of those that fit.
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

    /// Forgets the entries of this fingerprint that fit.
    pub(super) fn remove(&self, fingerprint: u64, fits: impl Fn(&Entry) -> bool) {
        let mut shard = self.shard(fingerprint);
        let Some(set) = shard.get_mut(Self::set(fingerprint)) else { return };
        for held in set.iter_mut().filter(|held| held.fingerprint == fingerprint) {
            if fits(held) {
                *held = Entry::default();
            }
        }
    }

    /// A panic elsewhere leaves the entries as good as they were.
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
    /// Whether this one is the newer answer to the same question.
    const fn renews(&self, held: &Self) -> bool {
        self.is_like(held) && self.cost == held.cost && self.at >= held.at
    }

    /// Whether this one says all that `held` does.
    const fn covers(&self, held: &Self) -> bool {
        self.is_like(held) && self.cost <= held.cost && self.until >= held.until
    }

    const fn is_like(&self, held: &Self) -> bool {
        self.fingerprint == held.fingerprint && self.limit == held.limit
    }
}
