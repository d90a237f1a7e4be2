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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headgate::{Cost, Key, LeaseId, Limit, ManualClock, Outcome, Verb};

    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);
    const LEASE: Duration = Duration::from_secs(1);

    /// A store with two shards, in which one subject has all the holders that there may be.
    struct Full {
        clock: Arc<ManualClock>,
        store: MemoryStore<Arc<ManualClock>>,
        limit: Limit,
    }

    impl Full {
        fn new() -> Self {
            const CAPACITY: usize = 2_048;
            let clock = Arc::new(ManualClock::new(START));
            let store = MemoryStore::builder().capacity(CAPACITY).clock(Arc::clone(&clock)).build();
            let limit = Limit::concurrency(10_000, Duration::from_secs(60)).unwrap();
            let full = Self { clock, store, limit };
            for n in 0..CAPACITY as u64 {
                assert!(full.reserve("crowd", n).allowed, "{n}");
            }
            full
        }

        fn reserve(&self, name: &str, n: u64) -> Outcome {
            self.apply(Verb::Reserve { id: LeaseId::from(n), lease: LEASE }, name)
        }

        fn apply(&self, verb: Verb, name: &str) -> Outcome {
            let check = Check::new(Key::new(name).unwrap(), &self.limit, Cost::ONE).unwrap();
            self.store.apply_now(verb, &check.into())[0]
        }

        /// A subject of the other shard.
        fn elsewhere(&self) -> String {
            let shard = |name: &str| {
                let (key, shape) = (Key::new(name).unwrap(), Shape::of(&self.limit));
                self.store.shard_of(self.store.fingerprints.of(key, shape))
            };
            let mut names = (0..).map(|n| format!("new:{n}"));
            names.find(|name| shard(name) != shard("crowd")).unwrap()
        }
    }

    #[test]
    fn all_shards_are_swept_no_more_than_ten_times_a_second() {
        let holders = Holders::default();
        let due = [0, 1, 99_999, 100_000, 199_999, 200_000, 999_999, 1_099_998, 1_099_999]
            .map(|micros| holders.sweep_is_due(START.plus(micros)));
        assert_eq!(due, [true, false, false, true, false, true, true, false, true]);
    }

    #[test]
    fn places_that_ended_in_another_shard_make_room_for_a_new_holder() {
        let full = Full::new();
        let new = full.elsewhere();
        assert!(!full.reserve(&new, 1).allowed);
        full.clock.advance(LEASE);
        assert!(full.reserve(&new, 1).allowed);
    }

    #[test]
    fn a_call_that_takes_no_place_does_not_put_off_the_sweep() {
        let full = Full::new();
        full.clock.advance(Duration::from_millis(999));
        assert!(!full.apply(Verb::Cancel(LeaseId::from(u64::MAX)), "crowd").allowed);
        full.clock.advance(Duration::from_millis(1));
        assert!(full.reserve(&full.elsewhere(), 1).allowed);
    }

    #[test]
    fn a_store_full_of_holders_still_resets_them() {
        let full = Full::new();
        assert!(!full.apply(Verb::Peek, "crowd").allowed);
        let reset = full.apply(Verb::Reset, "crowd");
        assert!(reset.allowed && reset.remaining == 10_000, "{reset:?}");
        assert!(full.reserve("crowd", 1).allowed);
    }
}
