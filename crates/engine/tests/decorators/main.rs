//! Stores that wrap another store and handle its failures.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod breaker;
mod failure_policy;
mod holders;

use std::{
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use headgate::{
    Batch, Check, Cost, FailMode, HoldersFuture, Key, Limit, ManualClock, Outcome, Store,
    StoreError, StoreFuture, Timestamp, Verb,
};
use headgate_store_memory::MemoryStore;

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// A store in memory that a test can take down.
struct Fragile {
    store: MemoryStore<Arc<ManualClock>>,
    down: AtomicBool,
    asked: AtomicU32,
}

impl Fragile {
    fn new(clock: &Arc<ManualClock>) -> Arc<Self> {
        let store = MemoryStore::builder().clock(Arc::clone(clock)).build();
        Arc::new(Self { store, down: AtomicBool::new(false), asked: AtomicU32::new(0) })
    }
}

impl Store for Fragile {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        self.asked.fetch_add(1, Relaxed);
        if self.down.load(Relaxed) {
            return StoreFuture::pending(async {
                Err(StoreError::unavailable(io::Error::other("down")))
            });
        }
        self.store.apply(verb, batch)
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        self.asked.fetch_add(1, Relaxed);
        if self.down.load(Relaxed) {
            let down = StoreError::unavailable(io::Error::other("down"));
            return Box::pin(std::future::ready(Err(down)));
        }
        self.store.holders(check, max)
    }
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("not ready"),
    }
}

fn limit() -> Limit {
    Limit::token_bucket(4, Duration::from_secs(60)).unwrap()
}

fn acquire(store: &dyn Store, limit: &Limit, mode: FailMode) -> Result<Outcome, StoreError> {
    let check = Check::new(Key::new("k").unwrap(), limit, Cost::ONE).unwrap().with_fail_mode(mode);
    at_once(store.apply(Verb::Acquire, &check.into())).map(|outcomes| outcomes[0])
}
