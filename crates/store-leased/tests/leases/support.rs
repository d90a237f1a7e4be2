//! A store whose calls take time and fail, and instances that lease from it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{
    Batch, Check, Cost, Extra, Key, Limit, ManualClock, Outcome, Outcomes, Store, StoreError,
    StoreFuture, Timestamp, Verb,
};
use headgate_store_leased::{LeasedStore, Stats};
use headgate_store_memory::MemoryStore;

pub(crate) const HOLD: Duration = Duration::from_millis(200);

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

pub(crate) const fn second() -> Duration {
    Duration::from_secs(1)
}

/// A check that may lease a tenth of its limit.
pub(crate) fn check<'a>(name: &'a str, limit: &'a Limit) -> Check<'a> {
    let share = u32::try_from(limit.capacity() / 10).unwrap();
    let check = Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    check.with_extra(Extra::new(share, HOLD))
}

/// A store that other instances share.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Inner>);

struct Inner {
    store: MemoryStore<Arc<ManualClock>>,
    clock: Arc<ManualClock>,
    /// Microseconds until a call reaches the store.
    latency: AtomicU64,
    takes_time: AtomicBool,
    fails: AtomicBool,
    /// Calls that asked for units in advance.
    leases: AtomicU64,
}

impl Remote {
    pub(crate) fn new() -> (Self, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
        let (takes_time, fails) = (AtomicBool::new(false), AtomicBool::new(false));
        let (latency, leases, kept) = (AtomicU64::new(0), AtomicU64::new(0), Arc::clone(&clock));
        (Self(Arc::new(Inner { store, clock: kept, latency, takes_time, fails, leases })), clock)
    }

    /// Calls reach the store this much later.
    pub(crate) fn delay(&self, latency: Duration) {
        self.0.latency.store(latency.as_micros() as u64, Relaxed);
    }

    /// Calls let other tasks run.
    pub(crate) fn take_time(&self) {
        self.0.takes_time.store(true, Relaxed);
    }

    pub(crate) fn fail(&self) {
        self.0.fails.store(true, Relaxed);
    }

    /// Calls that asked for units in advance.
    pub(crate) fn leases(&self) -> u64 {
        self.0.leases.load(Relaxed)
    }
}

impl Store for Remote {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        self.0.leases.fetch_add(u64::from(matches!(verb, Verb::Lease)), Relaxed);
        StoreFuture::pending(async move {
            self.0.clock.advance(Duration::from_micros(self.0.latency.load(Relaxed)));
            if self.0.takes_time.load(Relaxed) {
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
            }
            if self.0.fails.load(Relaxed) {
                return Err(StoreError::unavailable(std::io::Error::other("down")));
            }
            self.0.store.apply(verb, batch).await
        })
    }
}

/// A process that leases.
pub(crate) struct Instance(LeasedStore<Remote, Arc<ManualClock>>, Arc<ManualClock>);

impl Instance {
    pub(crate) fn new(remote: &Remote, clock: &Arc<ManualClock>) -> Self {
        Self(LeasedStore::with_clock(remote.clone(), Arc::clone(clock)), Arc::clone(clock))
    }

    /// With room for few subjects.
    pub(crate) fn with_room(remote: &Remote, clock: &Arc<ManualClock>, subjects: usize) -> Self {
        let Self(store, clock) = Self::new(remote, clock);
        Self(store.reproducible(subjects, 1), clock)
    }

    /// Time passes until the next request of a busy subject.
    pub(crate) fn advance(&self) {
        self.1.advance(Duration::from_micros(100));
    }

    pub(crate) fn store(&self) -> &LeasedStore<Remote, Arc<ManualClock>> {
        &self.0
    }

    pub(crate) fn stats(&self) -> Stats {
        self.0.stats()
    }

    pub(crate) fn held(&self) -> u64 {
        self.0.held()
    }

    pub(crate) async fn apply_batch(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
    ) -> Result<Outcomes, StoreError> {
        self.0.apply(verb, batch).await
    }

    pub(crate) async fn apply(&self, verb: Verb, check: &Check<'_>) -> Outcome {
        self.apply_batch(verb, &Batch::from(*check)).await.unwrap()[0]
    }

    pub(crate) async fn acquire(&self, check: &Check<'_>) -> Outcome {
        self.apply(Verb::Acquire, check).await
    }

    pub(crate) async fn peek(&self, check: &Check<'_>) -> Outcome {
        self.apply(Verb::Peek, check).await
    }
}
