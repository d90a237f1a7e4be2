//! The instances, and the order of events.

use std::{rc::Rc, sync::Arc};

use headgate::{Batch, Check, Clock as _, Cost, Extra, Key, Limit, Store as _, Verb};
use headgate_store_leased::LeasedStore;

use crate::{
    executor::Executor,
    network::{Link, World},
    random::Random,
    report::Report,
    scenario::Scenario,
    virtual_time::{InstanceClock, VirtualTime},
    zipf::Zipf,
};

/// A second before midnight in UTC, in microseconds.
const START: u64 = 1_772_927_999_000_000;

/// Interval at which instances give back what is due, as the real task does.
const RETURN_EVERY: u64 = 5_000;

/// Subjects that an instance remembers: fewer than a real one, for the sake of memory.
const ROOM: usize = 16_384;

type Instance = LeasedStore<Link, InstanceClock>;

struct Fleet {
    world: Arc<World>,
    random: Random,
    instances: Vec<Rc<Instance>>,
    executor: Executor,
    terms: Rc<Terms>,
}

/// The same for all requests.
struct Terms {
    limit: Limit,
    extra: Option<Extra>,
}

/// The times of the next events, besides timers.
struct Schedule {
    /// Since the start, because requests may be less than a microsecond apart.
    arrival: f64,
    between_arrivals: f64,
    returns_at: u64,
    kill_at: u64,
    kill_every: u64,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Report {
    let time = VirtualTime::starting_at(START);
    let mut fleet = Fleet::new(scenario, &time);
    let mut schedule = Schedule::new(scenario);
    let zipf = Zipf::new(scenario.subjects);
    let end = START + scenario.length.as_micros() as u64;
    loop {
        let next = schedule.next();
        let next = time.next().map_or(next, |timer| timer.min(next));
        if next >= end {
            return fleet.world.books().report;
        }
        time.advance_to(next);
        fleet.executor.run();
        if next == schedule.arrives_at() {
            let subject = zipf.draw(&mut fleet.random);
            fleet.request(subject);
            schedule.arrival += fleet.random.exponential(schedule.between_arrivals);
        }
        if next == schedule.returns_at {
            fleet.give_back();
            schedule.returns_at += RETURN_EVERY;
        }
        if next == schedule.kill_at {
            fleet.kill();
            schedule.kill_at += schedule.kill_every;
        }
    }
}

impl Fleet {
    fn new(scenario: &Scenario, time: &Arc<VirtualTime>) -> Self {
        let mut fleet = Self {
            world: Arc::new(World::new(scenario, Arc::clone(time))),
            random: Random::new(scenario.seed),
            instances: Vec::new(),
            executor: Executor::default(),
            terms: Rc::new(Terms { limit: scenario.limit.clone(), extra: scenario.extra() }),
        };
        fleet.instances = (0..scenario.instances).map(|n| fleet.instance(n)).collect();
        fleet
    }

    fn instance(&mut self, number: usize) -> Rc<Instance> {
        let clock =
            InstanceClock { time: Arc::clone(&self.world.time), offset: self.random.below(START) };
        let link = Link { world: Arc::clone(&self.world), instance: number };
        let seed = self.random.below(u64::MAX);
        Rc::new(LeasedStore::with_clock(link, clock).reproducible(ROOM, seed))
    }

    fn any(&mut self) -> usize {
        self.random.below(self.instances.len() as u64) as usize
    }

    /// A request arrives at any instance.
    fn request(&mut self, subject: usize) {
        let which = self.any();
        let instance = Rc::clone(&self.instances[which]);
        let (world, terms) = (Arc::clone(&self.world), Rc::clone(&self.terms));
        let arrived = world.time.now();
        world.books().arrives(subject, arrived);
        self.executor.spawn(async move {
            let name = subject.to_string();
            let key = Key::new(&name).expect("digits are a key");
            let check = Check::new(key, &terms.limit, Cost::ONE).expect("one unit fits");
            let check = terms.extra.map_or(check, |extra| check.with_extra(extra));
            let answer = instance.apply(Verb::Acquire, &Batch::from(check)).await;
            let mut books = world.books();
            books.report.delayed += u64::from(world.time.now() > arrived);
            match answer.as_deref() {
                // What the store admits, it has recorded.
                Ok([outcome]) if outcome.allowed && outcome.leased => {
                    books.admits(subject, world.time.now());
                }
                Ok(_) => {}
                Err(_) => books.report.unanswered += 1,
            }
        });
    }

    fn give_back(&mut self) {
        for instance in &self.instances {
            let instance = Rc::clone(instance);
            self.executor.spawn(async move { instance.give_back_due().await });
        }
    }

    /// Replaces an instance. Its requests that wait for the store still get their answers, but
    /// what it held is gone.
    fn kill(&mut self) {
        let which = self.any();
        self.instances[which] = self.instance(which);
    }
}

impl Schedule {
    fn new(scenario: &Scenario) -> Self {
        let kill_every = 1_000_000_u64.checked_div(scenario.faults.kills_per_second);
        Self {
            arrival: 0.0,
            between_arrivals: 1e6 / (scenario.rate * scenario.instances as f64),
            returns_at: START + RETURN_EVERY,
            kill_at: kill_every.map_or(u64::MAX, |pause| START + pause),
            kill_every: kill_every.unwrap_or_default(),
        }
    }

    fn arrives_at(&self) -> u64 {
        START + self.arrival as u64
    }

    fn next(&self) -> u64 {
        self.arrives_at().min(self.returns_at).min(self.kill_at)
    }
}
