//! Several instances on one store, in random schedules: every unit that any of them admits is one
//! that the limit itself could have admitted.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use headgate::{
    Algorithm, Batch, Check, Clock, Cost, Extra, Key, Limit, ManualClock, State, Store, StoreError,
    StoreFuture, Timestamp, Verb, algorithm::Period,
};
use headgate_store_leased::LeasedStore;
use headgate_store_memory::MemoryStore;

/// Schedules in one run of the tests. `LEASE_SCHEDULES=100000` runs more.
const SCHEDULES: u64 = 2_000;

/// Two seconds before midnight in UTC, so that a calendar day ends, too.
const START: Timestamp = Timestamp::from_micros(1_772_927_998_000_000);

type SharedClock = Arc<ManualClock>;
type SharedRandom = Arc<Mutex<Random>>;

/// A store that answers late, and loses calls and answers.
#[derive(Clone)]
struct Network {
    store: Arc<MemoryStore<SharedClock>>,
    clock: SharedClock,
    random: SharedRandom,
    /// Costs that the store has admitted, and when: they are spent even if the answer is lost.
    admitted: Arc<Mutex<Vec<(Timestamp, u64)>>>,
}

impl Network {
    fn wait(&self) {
        let latency = match below(&self.random, 4) {
            0 => below(&self.random, 100_000),
            _ => below(&self.random, 1_000),
        };
        self.clock.advance(Duration::from_micros(latency));
    }
}

impl Store for Network {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        let lost =
            || StoreFuture::ready(Err(StoreError::unavailable(std::io::Error::other("lost"))));
        self.wait();
        if below(&self.random, 20) == 0 {
            return lost();
        }
        let outcomes = self.store.apply_now(verb, batch);
        if matches!(verb, Verb::Acquire | Verb::Lease) && outcomes[0].allowed {
            let cost = batch.checks()[0].cost().get();
            self.admitted.lock().unwrap().push((outcomes[0].at, cost));
        }
        self.wait();
        if below(&self.random, 20) == 0 {
            return lost();
        }
        StoreFuture::ready(Ok(outcomes))
    }
}

/// Runs one schedule; returns `true` if the limit could have admitted what was admitted.
async fn is_exact(seed: u64) -> bool {
    let random = Arc::new(Mutex::new(Random(seed)));
    let clock = Arc::new(ManualClock::new(START));
    let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
    let network = Network {
        store,
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        admitted: Arc::default(),
    };
    let limit = random.lock().unwrap().limit();
    let hold = Duration::from_micros(10_000 + below(&random, 400_000));
    let extra = Extra::new(1 + below(&random, limit.capacity()) as u32, hold);
    let instance = || LeasedStore::with_clock(network.clone(), Arc::clone(&clock));
    let mut instances = [instance(), instance(), instance()];
    let mut spent = Vec::new();
    for _ in 0..200 {
        let pause = [0, 10, 1_000, 20_000, 200_000][below(&random, 5) as usize];
        clock.advance(Duration::from_micros(below(&random, pause + 1)));
        let which = below(&random, 3) as usize;
        match below(&random, 40) {
            0 => instances[which] = instance(),
            1 => instances[which].give_back_all().await,
            2..=5 => instances[which].give_back_due().await,
            _ => {
                let cost =
                    if below(&random, 8) == 0 { below(&random, limit.capacity()) } else { 0 };
                let cost = Cost::new(1 + cost).unwrap();
                let check = Check::new(Key::new("u").unwrap(), &limit, cost).unwrap();
                let batch = Batch::from(check.with_extra(extra));
                let now = clock.now();
                let answer = instances[which].apply(Verb::Acquire, &batch).await;
                // What the store admitted is on its list.
                if let Ok([outcome]) = answer.as_deref()
                    && outcome.allowed
                    && outcome.leased
                {
                    spent.push((now, cost.get()));
                }
            }
        }
    }
    spent.extend(network.admitted.lock().unwrap().iter());
    spent.sort_by_key(|(at, _)| *at);
    let mut state = State::default();
    spent.iter().all(|(at, units)| limit.admit(&mut state, Cost::new(*units).unwrap(), *at))
}

#[tokio::test]
async fn no_schedule_of_three_instances_admits_more_than_the_limit() {
    let schedules = std::env::var("LEASE_SCHEDULES").ok().and_then(|n| n.parse().ok());
    for seed in 0..schedules.unwrap_or(SCHEDULES) {
        assert!(is_exact(seed).await, "schedule {seed}");
    }
}

/// A `SplitMix64` generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn limit(&mut self) -> Limit {
        let algorithm = Algorithm::ALL[self.below(Algorithm::ALL.len() as u64) as usize];
        let number = 1 + self.below(200);
        if algorithm == Algorithm::Calendar {
            return Limit::calendar(number, Period::Day, "UTC").unwrap();
        }
        let window = Duration::from_micros(100_000 + self.below(4_000_000));
        let limit = Limit::new(algorithm, number, window).unwrap();
        let burst = 1 + self.below(2 * number);
        limit.clone().with_burst(burst).unwrap_or(limit)
    }
}

fn below(random: &SharedRandom, bound: u64) -> u64 {
    random.lock().unwrap().below(bound)
}
