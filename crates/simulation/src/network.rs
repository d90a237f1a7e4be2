//! The way to the store and back.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use headgate::{Batch, Outcomes, Store, StoreError, StoreFuture, Verb};
use headgate_store_memory::MemoryStore;

use crate::{books::Books, random::Random, scenario::Scenario, virtual_time::VirtualTime};

/// The store, what it has admitted, and the network around it.
pub(crate) struct World {
    pub(crate) time: Arc<VirtualTime>,
    store: MemoryStore<Arc<VirtualTime>>,
    books: Mutex<Books>,
    random: Mutex<Random>,
    latency: f64,
    lost_per_mille: u64,
    /// When every other instance is cut off.
    partition: [u64; 2],
}

/// The store, as an instance reaches it.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) world: Arc<World>,
    pub(crate) instance: usize,
}

/// The time after which an instance gives up.
const TIMEOUT: Duration = Duration::from_millis(100);

impl World {
    pub(crate) fn new(scenario: &Scenario, time: Arc<VirtualTime>) -> Self {
        let store = MemoryStore::builder().clock(Arc::clone(&time));
        let (start, length) = (time.micros(), scenario.length.as_micros() as u64);
        let partition = if scenario.faults.partition {
            [start + length / 4, start + length / 2]
        } else {
            [0; 2]
        };
        Self {
            store: store.capacity(scenario.subjects * 2).build(),
            time,
            books: Mutex::new(Books::new(scenario.limit.clone(), scenario.subjects)),
            random: Mutex::new(Random::new(!scenario.seed)),
            latency: scenario.latency.as_micros() as f64,
            lost_per_mille: scenario.faults.lost_per_mille,
            partition,
        }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn random(&self) -> MutexGuard<'_, Random> {
        self.random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time that a message takes in one direction: at least half of the median, and one in a
    /// hundred ten times as long.
    fn delay(&self) -> u64 {
        let mut random = self.random();
        let stretch = if random.below(100) == 0 { 10.0 } else { 1.0 };
        let more = self.latency / 2.0 / std::f64::consts::LN_2;
        (stretch * (self.latency / 2.0 + random.exponential(more))) as u64
    }
}

impl Link {
    /// Returns `false` if the message is lost.
    async fn passes(&self) -> bool {
        let World { time, partition: [from, to], lost_per_mille, .. } = &*self.world;
        let is_cut_off =
            || self.instance.is_multiple_of(2) && (*from..*to).contains(&time.micros());
        let lost = is_cut_off() || self.world.random().below(1_000) < *lost_per_mille;
        time.sleep(self.world.delay()).await;
        !(lost || is_cut_off())
    }

    async fn call(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        let sent = self.world.time.micros();
        if self.passes().await {
            let outcomes = self.world.store.apply_now(verb, batch);
            self.world.books().decided(verb, batch, &outcomes);
            if self.passes().await {
                return Ok(outcomes);
            }
        }
        let gives_up = sent + TIMEOUT.as_micros() as u64;
        self.world.time.sleep(gives_up.saturating_sub(self.world.time.micros())).await;
        Err(StoreError::Timeout(TIMEOUT))
    }
}

impl Store for Link {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(self.call(verb, batch))
    }
}
