//! Refunds and reservations in random schedules: whatever returns, the algorithm itself could have
//! admitted what is left.

use std::time::Duration;

use headgate::{
    Check, Cost, Key, LeaseId, Limit, Outcome, Spent, Standing, State, Timestamp, Verb,
};

use super::{Model, random::Random};

/// Schedules in one run of the tests. `RETURN_SCHEDULES=1000000` runs more.
const SCHEDULES: u64 = 10_000;

/// Five seconds before midnight in UTC, so that a calendar day ends, too.
const START: Timestamp = Timestamp::from_micros(1_772_927_995_000_000);

/// What returns, and mistakes that one could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Sound,
    /// A refund does not say when its units were taken.
    RefundsWithoutTime,
    /// A reservation is cancelled by committing it and returning its units without a time.
    ReturnsAllThatWasReserved,
}

/// Units that were taken and have not returned.
struct Taken {
    at: Timestamp,
    units: u64,
}

struct Pending {
    id: LeaseId,
    held: Taken,
    used: u64,
    expires_at: Timestamp,
}

struct World {
    random: Random,
    protocol: Protocol,
    limit: Limit,
    window: u64,
    model: Model,
    now: Timestamp,
    /// Units that may be refunded.
    taken: Vec<Taken>,
    /// Units of reservations that were spent.
    spent: Vec<Taken>,
    pending: Vec<Pending>,
}

impl World {
    fn new(seed: u64, protocol: Protocol) -> Self {
        let mut random = Random(seed);
        let (limit, window) = random.limit();
        let (model, now) = (Model::default(), START);
        let (taken, spent, pending) = (Vec::new(), Vec::new(), Vec::new());
        Self { random, protocol, limit, window, model, now, taken, spent, pending }
    }

    fn run(&mut self) {
        for _ in 0..10 + self.random.below(60) {
            self.wait();
            match self.random.below(9) {
                0 | 1 => self.take(),
                2 | 3 => self.reserve(),
                4 => self.charge(),
                5 => self.settle(),
                6 => self.cancel(),
                _ => self.refund(),
            }
            // The worst that can happen: others take what has returned at once.
            if self.random.below(3) == 0 {
                while self.acquire(1) {}
            }
        }
    }

    fn wait(&mut self) {
        let pause = match self.random.below(7) {
            0 | 1 => 0,
            2 => 1,
            3 => self.random.below(20),
            4 | 5 => self.random.below(self.window / 8),
            _ => self.random.below(self.window),
        };
        self.now = self.now.plus(pause);
        let now = self.now;
        self.pending.retain(|pending| pending.expires_at > now);
    }

    fn take(&mut self) {
        let cost = 1 + self.random.below(self.limit.capacity());
        self.acquire(cost);
    }

    fn acquire(&mut self, units: u64) -> bool {
        let allowed = self.apply(Verb::Acquire, units, |check| check).allowed;
        self.taken.extend(allowed.then_some(Taken { at: self.now, units }));
        allowed
    }

    /// Gives some of any earlier acquisition back, sometimes all of it, and once.
    fn refund(&mut self) {
        let Some(which) = self.any(self.taken.len()) else { return };
        let Taken { at, units } = self.taken.swap_remove(which);
        let some = 1 + self.random.below(units);
        let back = if self.random.below(2) == 0 { units } else { some };
        let timed = self.protocol != Protocol::RefundsWithoutTime;
        self.apply(Verb::Refund, back, |check| if timed { check.taken_at(at) } else { check });
        self.spent.push(Taken { at, units: units - back });
    }

    fn reserve(&mut self) {
        let units = 1 + self.random.below(self.limit.capacity());
        let (id, lease) = (LeaseId::from(self.random.below(u64::MAX)), self.lease());
        let outcome = self.apply(Verb::Reserve { id, lease }, units, |check| check);
        if outcome.allowed {
            let (at, expires_at) = (self.now, self.now + lease);
            self.pending.push(Pending { id, held: Taken { at, units }, used: 0, expires_at });
        }
    }

    fn lease(&mut self) -> Duration {
        Duration::from_micros(1 + self.random.below(2 * self.window))
    }

    /// Uses some of what a reservation holds.
    fn charge(&mut self) {
        let Some(which) = self.any(self.pending.len()) else { return };
        let (mut pending, lease) = (self.pending.swap_remove(which), self.lease());
        let units = self.random.below(pending.held.units + 1);
        let verb = Verb::Use { id: pending.id, lease };
        let total = Spent::in_total(pending.used + units);
        let spent = [Spent::within_the_limit(units), total][self.random.below(2) as usize];
        let outcome = self.apply(verb, 1, |check| check.spent(spent));
        let Some(Standing::Pending { held, expires_at }) = outcome.reservation() else {
            panic!("it has not expired: {outcome:?}");
        };
        self.spent.push(Taken { at: pending.held.at, units });
        let is_anew = pending.held.units - units < units;
        let at = if is_anew { self.now } else { pending.held.at };
        pending.used += units;
        assert_eq!(expires_at, self.now + lease);
        self.pending.push(Pending { held: Taken { at, units: held }, expires_at, ..pending });
    }

    /// Settles a reservation for less than it holds, or for more.
    fn settle(&mut self) {
        let Some(which) = self.any(self.pending.len()) else { return };
        let Pending { id, held, used, .. } = self.pending.swap_remove(which);
        let more = self.random.below(2 * held.units + 2);
        let spent = Spent::within_the_limit(used + more);
        let outcome = self.apply(Verb::Commit(id), 1, |check| check.spent(spent));
        let owed = match outcome.reservation() {
            Some(Standing::Settled { .. }) => 0,
            Some(Standing::Owing { owed, .. }) => owed,
            other => panic!("it has not expired: {other:?}"),
        };
        let kept = more.min(held.units);
        self.spent.push(Taken { at: held.at, units: kept });
        self.spent.push(Taken { at: self.now, units: more - kept - owed });
    }

    fn cancel(&mut self) {
        let Some(which) = self.any(self.pending.len()) else { return };
        let Pending { id, held, .. } = self.pending.swap_remove(which);
        if self.protocol == Protocol::ReturnsAllThatWasReserved {
            self.apply(Verb::Commit(id), 1, |check| check);
            let units = held.units.clamp(1, self.limit.capacity());
            self.apply(Verb::Refund, units, |check| check);
        } else {
            assert!(self.apply(Verb::Cancel(id), 1, |check| check).allowed);
        }
    }

    fn any(&mut self, len: usize) -> Option<usize> {
        (len > 0).then(|| self.random.below(len as u64) as usize)
    }

    fn apply(
        &mut self,
        verb: Verb,
        cost: u64,
        terms: impl for<'a> Fn(Check<'a>) -> Check<'a>,
    ) -> Outcome {
        let (key, cost) = (Key::new("u").unwrap(), Cost::new(cost).unwrap());
        let check = Check::new(key, &self.limit, cost).unwrap();
        self.model.apply(verb, &[terms(check)], &[self.now])[0]
    }

    /// Returns `true` if the algorithm admits everything that has not returned, in order.
    fn stays_within_the_limit(self) -> bool {
        let pending = self.pending.into_iter().map(|pending| pending.held);
        let mut all: Vec<Taken> = self.taken.into_iter().chain(self.spent).chain(pending).collect();
        all.sort_by_key(|taken| taken.at);
        let mut state = State::default();
        all.iter()
            .filter(|taken| taken.units > 0)
            .all(|taken| self.limit.admit(&mut state, Cost::new(taken.units).unwrap(), taken.at))
    }
}

/// Number of schedules in which more is taken than the limit admits.
fn excesses(protocol: Protocol, schedules: u64) -> u64 {
    let exceeds = |seed: &u64| {
        let mut world = World::new(*seed, protocol);
        world.run();
        !world.stays_within_the_limit()
    };
    (0..schedules).filter(exceeds).count() as u64
}

#[test]
fn whatever_returns_the_limit_could_have_admitted_the_rest() {
    let schedules = std::env::var("RETURN_SCHEDULES").ok().and_then(|n| n.parse().ok());
    assert_eq!(excesses(Protocol::Sound, schedules.unwrap_or(SCHEDULES)), 0);
}

#[test]
fn every_known_mistake_is_found() {
    for mistake in [Protocol::RefundsWithoutTime, Protocol::ReturnsAllThatWasReserved] {
        assert!(excesses(mistake, SCHEDULES) > 0, "{mistake:?}");
    }
}

/// Takes 5, waits until the bucket is full, takes the whole burst, and refunds the 5.
#[test]
fn a_bucket_that_has_refilled_gets_nothing_back() {
    let limit = Limit::token_bucket(10, Duration::from_secs(10)).unwrap();
    let mut model = Model::default();
    let mut apply = |verb, cost, at: u64| {
        let cost = Cost::new(cost).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &limit, cost).unwrap().taken_at(START);
        model.apply(verb, &[check], &[START.plus(at)])[0]
    };
    apply(Verb::Acquire, 5, 0);
    assert_eq!(apply(Verb::Refund, 1, 0).remaining, 6);
    assert!(apply(Verb::Acquire, 10, 5_000_000).allowed);
    let refunded = apply(Verb::Refund, 4, 5_000_000);
    assert_eq!((refunded.allowed, refunded.remaining), (true, 0));
}
