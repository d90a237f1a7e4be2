//! The holders of places: their number over all shards, and those of one subject.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use headgate::{Check, Clock, State, Timestamp};

use crate::{fingerprint::Shape, lock::lock, store::MemoryStore};

/// The holders of all concurrency limits. One subject may have more of them than a shard has slots,
/// so they are counted for the whole store. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holders(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    now: AtomicUsize,
    max: usize,
    /// Earliest time of the next sweep of all shards, in microseconds.
    sweep_at: AtomicU64,
}

impl Holders {
    /// Shortest time between two sweeps of all shards, in microseconds.
    const SWEEP_EVERY: u64 = 100_000;

    pub(crate) fn at_most(max: usize) -> Self {
        Self(Arc::new(Counts { max, ..Counts::default() }))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.now.load(Relaxed) >= self.0.max
    }

    /// Returns `true` if it is time to free the places whose leases have ended, in all shards.
    pub(crate) fn sweep_is_due(&self, now: Timestamp) -> bool {
        let (now, due) = (now.as_micros(), self.0.sweep_at.load(Relaxed));
        let next = now.saturating_add(Self::SWEEP_EVERY);
        now >= due && self.0.sweep_at.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// Counts the holders of a state that is put into a shard.
    pub(crate) fn add(&self, state: &State) {
        if let State::Places(places) = state {
            self.0.now.fetch_add(places.len(), Relaxed);
        }
    }

    /// Uncounts the holders of a state that is taken out of a shard.
    pub(crate) fn remove(&self, state: &State) {
        if let State::Places(places) = state {
            self.0.now.fetch_sub(places.len(), Relaxed);
        }
    }
}

impl<C: Clock> MemoryStore<C> {
    /// Lists the holders of one subject.
    pub(crate) fn list_holders(&self, check: &Check<'_>, max: usize) -> headgate::Holders {
        let fingerprint = self.fingerprints.of(check.key(), Shape::of(check.limit()));
        let clock = self.clock.now();
        let mut shard = lock(&self.shards[self.shard_of(fingerprint)].0);
        let now = shard.tick(clock);
        let state = shard.heavy_state(fingerprint).unwrap_or(&State::Fresh);
        headgate::Holders::of(state, max, now)
    }
}
