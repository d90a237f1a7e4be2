//! Several instances on one store, in random schedules: every unit that any of them admits is one
//! that the limit itself could have admitted.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use headgate::{
    Account, Algorithm, Batch, Check, Clock, Cost, Extra, Key, Limit, ManualClock, Store,
    StoreError, StoreFuture, Timestamp, Verb, algorithm::Period,
};
use headgate_store_leased::LeasedStore;
use headgate_store_memory::MemoryStore;

/// Schedules in one run of the tests. `LEASE_SCHEDULES=100000` runs more.
const SCHEDULES: u64 = 2_000;

/// Two seconds before midnight in UTC, so that a calendar day ends, too.
const START: Timestamp = Timestamp::from_micros(1_772_927_998_000_000);

type SharedClock = Arc<ManualClock>;
type SharedRandom = Arc<Mutex<Random>>;

/// The clock of an instance, whose wall clock is set to any time, again and again.
#[derive(Clone)]
struct InstanceClock {
    time: SharedClock,
    random: SharedRandom,
    offset: u64,
}

impl Clock for InstanceClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(below(&self.random, u64::MAX / 2))
    }

    fn steady(&self) -> u64 {
        self.time.now().as_micros() - self.offset
    }
}

/// Something that counts against the limit, in the order in which it happened.
struct Entry {
    at: Timestamp,
    limit: Limit,
    /// None, if a denial only made the store apply a changed limit.
    units: Option<Cost>,
}

/// A store that answers late, and loses calls and answers.
#[derive(Clone)]
struct Network {
    store: Arc<MemoryStore<SharedClock>>,
    clock: SharedClock,
    random: SharedRandom,
    log: Arc<Mutex<Vec<Entry>>>,
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
        // What the store admits is spent even if the answer is lost.
        for (check, outcome) in batch.checks().iter().zip(&outcomes) {
            let admits = matches!(verb, Verb::Acquire | Verb::Lease) && outcome.allowed;
            let (at, limit) = (outcome.at, check.limit().clone());
            let units = admits.then_some(check.cost());
            self.log.lock().unwrap().push(Entry { at, limit, units });
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
    let network = Network {
        store: Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build()),
        clock: Arc::clone(&clock),
        random: Arc::clone(&random),
        log: Arc::default(),
    };
    let mut limit = random.lock().unwrap().limit();
    let hold = Duration::from_micros(10_000 + below(&random, 400_000));
    let instance = || {
        let offset = below(&random, START.as_micros());
        let (time, random) = (Arc::clone(&clock), Arc::clone(&random));
        LeasedStore::with_clock(network.clone(), InstanceClock { time, random, offset })
    };
    let mut instances = [instance(), instance(), instance()];
    for _ in 0..200 {
        let pause = [0, 10, 1_000, 20_000, 200_000][below(&random, 5) as usize];
        clock.advance(Duration::from_micros(below(&random, pause + 1)));
        let which = below(&random, 3) as usize;
        match below(&random, 40) {
            0 => instances[which] = instance(),
            1 => instances[which].give_back_all().await,
            2..=5 => instances[which].give_back_due().await,
            6 if below(&random, 4) == 0 => limit = random.lock().unwrap().changed(&limit),
            _ => {
                let cost =
                    if below(&random, 8) == 0 { below(&random, limit.capacity()) } else { 0 };
                let cost = Cost::new(1 + cost).unwrap();
                let extra = Extra::new(1 + below(&random, limit.capacity()) as u32, hold);
                let check = Check::new(Key::new("u").unwrap(), &limit, cost).unwrap();
                let batch = Batch::from(check.with_extra(extra));
                let answer = instances[which].apply(Verb::Acquire, &batch).await;
                // What is held is handed out last, after a call that was in vain.
                let at = clock.now();
                // What the store admitted is in the log.
                if let Ok([outcome]) = answer.as_deref()
                    && outcome.allowed
                    && outcome.leased
                {
                    let entry = Entry { at, limit: limit.clone(), units: Some(cost) };
                    network.log.lock().unwrap().push(entry);
                }
            }
        }
    }
    could_be_admitted(&network.log.lock().unwrap())
}

/// Returns `true` if a single store would have admitted the same.
fn could_be_admitted(log: &[Entry]) -> bool {
    let mut account = Account::default();
    log.iter().all(|Entry { at, limit, units }| {
        let check = Check::new(Key::new("u").unwrap(), limit, units.unwrap_or(Cost::ONE)).unwrap();
        let admits = units.is_some() && account.permits(&check, Verb::Acquire, *at);
        account.act(&check, Verb::Acquire, *at, admits);
        admits || units.is_none()
    })
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
        let algorithm = Algorithm::RATES[self.below(Algorithm::RATES.len() as u64) as usize];
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

impl Random {
    /// The same algorithm and window with another number.
    fn changed(&mut self, limit: &Limit) -> Limit {
        let number = 1 + self.below(200);
        match limit.window() {
            Some(window) => Limit::new(limit.algorithm(), number, window),
            None => Limit::calendar(number, Period::Day, "UTC"),
        }
        .unwrap()
    }
}

fn below(random: &SharedRandom, bound: u64) -> u64 {
    random.lock().unwrap().below(bound)
}
