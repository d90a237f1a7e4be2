//! A store whose calls are recorded, held up and failed.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use headgate::{Batch, ManualClock, Store, StoreError, StoreFuture, Timestamp, Verb};
use headgate_store_memory::MemoryStore;
use tokio::sync::watch;

/// A store in memory on a manual clock.
pub(super) struct Observed {
    store: MemoryStore<Arc<ManualClock>>,
    pub(super) clock: Arc<ManualClock>,
    verbs: Mutex<Vec<&'static str>>,
    is_down: AtomicBool,
    /// Calls wait while this is `true`.
    held_up: watch::Sender<bool>,
}

impl Observed {
    pub(super) fn new() -> Arc<Self> {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000)));
        Arc::new(Self {
            store: MemoryStore::builder().clock(Arc::clone(&clock)).build(),
            clock,
            verbs: Mutex::default(),
            is_down: AtomicBool::new(false),
            held_up: watch::Sender::new(false),
        })
    }

    /// The verbs of the calls so far.
    pub(super) fn verbs(&self) -> Vec<&'static str> {
        self.verbs.lock().unwrap().clone()
    }

    pub(super) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, SeqCst);
    }

    pub(super) fn hold_up(&self, held_up: bool) {
        self.held_up.send_replace(held_up);
    }

    /// Moves the clocks of the store and of the runtime, which must be paused.
    pub(super) async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        tokio::time::advance(by).await;
        // The tasks that are due run.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

impl Store for Observed {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        self.verbs.lock().unwrap().push(match verb {
            Verb::Acquire => "acquire",
            Verb::Use { .. } => "renew",
            Verb::Cancel(_) => "release",
            _ => "other",
        });
        StoreFuture::pending(async move {
            let mut held_up = self.held_up.subscribe();
            let _ = held_up.wait_for(|held_up| !held_up).await;
            if self.is_down.load(SeqCst) {
                return Err(StoreError::Timeout(Duration::from_millis(100)));
            }
            self.store.apply(verb, batch).await
        })
    }
}
