//! Instances that hold grants, in random schedules: whatever they do, the algorithm itself could
//! have admitted it.

use std::time::Duration;

use headgate::{
    Algorithm, Check, Cost, Extra, Grant, Key, Limit, State, Timestamp, Verb, algorithm::Period,
};

use super::Model;

/// Schedules in one run of the tests. `LEASE_SCHEDULES=1000000` runs more.
const SCHEDULES: u64 = 10_000;

/// Five seconds before midnight in UTC, so that a calendar day ends, too.
const START: Timestamp = Timestamp::from_micros(1_772_927_995_000_000);

/// What the instances and the store agree on, and mistakes that one could make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Sound,
    /// Granted units are recorded when they are granted, not when their grant ends.
    RecordedAtOnce,
    /// An instance counts from the arrival of the answer, not from before the call was sent.
    HeldFromTheAnswer,
    /// Units come back after their grant has ended.
    ReturnedLate,
    /// A grant lasts beyond the window in which it was made.
    OutlivesTheWindow,
}

/// Units in the hands of an instance.
struct Hand {
    units: u64,
    grant: Grant,
    /// End of the grant by the instance's clock.
    until: Timestamp,
}

/// What came with an admission.
struct Granted(Option<Grant>);

enum Message {
    Lease { sent: Timestamp },
    Answer { sent: Timestamp, at: Timestamp, grant: Grant },
    GiveBack { units: u64, grant: Grant },
}

struct World {
    random: Random,
    protocol: Protocol,
    limit: Limit,
    hold: Duration,
    model: Model,
    now: Timestamp,
    /// Messages under way; they may overtake each other.
    messages: Vec<Message>,
    hands: Vec<Hand>,
    spent: Vec<(Timestamp, u64)>,
}

impl World {
    fn new(seed: u64, protocol: Protocol) -> Self {
        let mut random = Random(seed);
        let (limit, window) = random.limit();
        let hold = Duration::from_micros(2 + random.below(window / 2));
        let (model, now) = (Model::default(), START);
        let (messages, hands, spent) = (Vec::new(), Vec::new(), Vec::new());
        Self { random, protocol, limit, hold, model, now, messages, hands, spent }
    }

    fn run(&mut self) {
        for _ in 0..10 + self.random.below(60) {
            self.wait();
            match self.random.below(12) {
                0 => self.take(),
                1 | 2 => self.messages.push(Message::Lease { sent: self.now }),
                3..=7 => self.deliver(),
                8 | 9 => self.give_back(),
                10 if self.random.below(4) == 0 => self.lose(),
                _ => self.spend(),
            }
            if self.random.below(8) == 0 {
                self.spend_all_at_the_last_moment();
            }
        }
        self.spend_all_at_the_last_moment();
    }

    fn wait(&mut self) {
        let hold = self.hold.as_micros() as u64;
        let pause = match self.random.below(6) {
            0 | 1 => 0,
            2 => 1,
            3 => self.random.below(10),
            _ => self.random.below(hold / 2),
        };
        self.now = self.now.plus(pause);
    }

    /// The worst that can happen: an instance spends what it holds just before its grant ends, while
    /// another request takes everything that the store has left.
    fn spend_all_at_the_last_moment(&mut self) {
        let now = self.now;
        self.hands.retain(|hand| hand.until > now);
        if let Some(hand) = self.any_hand() {
            self.now = Timestamp::from_micros(hand.until.as_micros() - 1);
            self.spent.push((self.now, hand.units));
        }
        while self.take_one() {}
    }

    /// Takes what any instance holds.
    fn any_hand(&mut self) -> Option<Hand> {
        let which = self.random.below(self.hands.len() as u64) as usize;
        (which < self.hands.len()).then(|| self.hands.swap_remove(which))
    }

    fn take_one(&mut self) -> bool {
        let taken = self.apply(Verb::Acquire, 1, |check| check).is_some();
        self.spent.extend(taken.then_some((self.now, 1)));
        taken
    }

    /// A request that is decided by the store.
    fn take(&mut self) {
        let cost = 1 + self.random.below(self.limit.capacity());
        if self.apply(Verb::Acquire, cost, |check| check).is_some() {
            self.spent.push((self.now, cost));
        }
    }

    /// Delivers any of the messages, or loses it.
    fn deliver(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let message =
            self.messages.swap_remove(self.random.below(self.messages.len() as u64) as usize);
        if self.random.below(8) == 0 {
            return;
        }
        match message {
            Message::Lease { sent } => self.lease(sent),
            Message::Answer { sent, at, grant } => {
                let from =
                    if self.protocol == Protocol::HeldFromTheAnswer { self.now } else { sent };
                let until = from.plus(grant.until.since(at));
                self.hands.push(Hand { units: grant.units, grant, until });
            }
            Message::GiveBack { units, grant } => self.return_units(units, grant),
        }
    }

    /// The store decides a request for one unit and some more.
    fn lease(&mut self, sent: Timestamp) {
        let extra = 1 + self.random.below(self.limit.capacity()) as u32;
        let granted = match self.protocol {
            Protocol::RecordedAtOnce => self.grant_at_once(extra),
            Protocol::OutlivesTheWindow => {
                let extra = Extra::new(extra, self.hold);
                let until = self.now + self.hold;
                let granted = self.apply(Verb::Lease, 1, |check| check.with_extra(extra));
                granted.map(|granted| Granted(granted.0.map(|grant| Grant { until, ..grant })))
            }
            _ => {
                let extra = Extra::new(extra, self.hold);
                self.apply(Verb::Lease, 1, |check| check.with_extra(extra))
            }
        };
        if let Some(Granted(grant)) = granted {
            self.spent.push((self.now, 1));
            let answer = grant.map(|grant| Message::Answer { sent, at: self.now, grant });
            self.messages.extend(answer);
        }
    }

    /// The mistake of recording granted units when they are granted.
    fn grant_at_once(&mut self, extra: u32) -> Option<Granted> {
        self.apply(Verb::Acquire, 1, |check| check)?;
        let account = self.model.accounts.get_mut("u")?;
        let left = self.limit.remaining(&account.state, self.now).min(extra.into());
        let Ok(units) = Cost::new(left) else { return Some(Granted(None)) };
        self.limit.record(&mut account.state, units, self.now);
        let until = Grant::end(&self.limit, self.hold, self.now);
        Some(Granted(Some(Grant { units: left, until })))
    }

    fn return_units(&mut self, units: u64, grant: Grant) {
        match self.protocol {
            Protocol::RecordedAtOnce if self.now >= grant.until => None,
            Protocol::RecordedAtOnce | Protocol::ReturnedLate => {
                self.apply(Verb::Refund, units, |check| check)
            }
            _ => self.apply(Verb::GiveBack, units, |check| check.from_grant_until(grant.until)),
        };
    }

    /// An instance returns what it holds.
    fn give_back(&mut self) {
        if let Some(hand) = self.any_hand() {
            let Hand { units, grant, .. } = hand;
            self.messages.push(Message::GiveBack { units, grant });
        }
    }

    /// An instance is killed.
    fn lose(&mut self) {
        self.any_hand();
    }

    fn spend(&mut self) {
        let now = self.now;
        self.hands.retain(|hand| hand.until > now);
        if self.hands.is_empty() {
            return;
        }
        let which = self.random.below(self.hands.len() as u64) as usize;
        let units = 1 + self.random.below(self.hands[which].units);
        self.hands[which].units -= units;
        self.hands.retain(|hand| hand.units > 0);
        self.spent.push((now, units));
    }

    /// Returns the grant if the store allows it.
    fn apply(
        &mut self,
        verb: Verb,
        cost: u64,
        terms: impl for<'a> Fn(Check<'a>) -> Check<'a>,
    ) -> Option<Granted> {
        let (key, cost) = (Key::new("u").unwrap(), Cost::new(cost).unwrap());
        let check = Check::new(key, &self.limit, cost).unwrap();
        let outcome = self.model.apply(verb, &[terms(check)], &[self.now])[0];
        outcome.allowed.then_some(Granted(outcome.grant))
    }

    /// Returns `true` if the algorithm admits everything that was spent, in order.
    fn is_within_the_limit(&mut self) -> bool {
        self.spent.sort_by_key(|(at, _)| *at);
        let mut state = State::default();
        self.spent
            .iter()
            .all(|(at, units)| self.limit.admit(&mut state, Cost::new(*units).unwrap(), *at))
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

    /// A limit of any algorithm, and its window in microseconds.
    fn limit(&mut self) -> (Limit, u64) {
        let algorithm = Algorithm::ALL[self.below(Algorithm::ALL.len() as u64) as usize];
        let number = 1 + self.below(60);
        if algorithm == Algorithm::Calendar {
            return (Limit::calendar(number, Period::Day, "UTC").unwrap(), 2_000_000);
        }
        let window = 1_000 + self.below(3_000);
        let limit = Limit::new(algorithm, number, Duration::from_micros(window)).unwrap();
        let burst = 1 + self.below(2 * number);
        (limit.clone().with_burst(burst).unwrap_or(limit), window)
    }
}

/// Number of schedules in which more is spent than the limit admits.
fn excesses(protocol: Protocol, schedules: u64) -> u64 {
    let exceeds = |seed: &u64| {
        let mut world = World::new(*seed, protocol);
        world.run();
        !world.is_within_the_limit()
    };
    (0..schedules).filter(exceeds).count() as u64
}

#[test]
fn whatever_the_holders_do_the_limit_could_have_admitted_it() {
    let schedules = std::env::var("LEASE_SCHEDULES").ok().and_then(|n| n.parse().ok());
    assert_eq!(excesses(Protocol::Sound, schedules.unwrap_or(SCHEDULES)), 0);
}

#[test]
fn every_known_mistake_is_found() {
    for mistake in [
        Protocol::RecordedAtOnce,
        Protocol::HeldFromTheAnswer,
        Protocol::ReturnedLate,
        Protocol::OutlivesTheWindow,
    ] {
        assert!(excesses(mistake, SCHEDULES) > 0, "{mistake:?}");
    }
}
