//! Instances that hold grants, in random schedules: whatever they do, the algorithm itself could
//! have admitted it.

use std::time::Duration;

use headgate::{Account, Cost, Grant, State, Timestamp};

use super::{
    protocol::{Protocol, Terms},
    random::Random,
};

/// Schedules in one run of the tests. `LEASE_SCHEDULES=1000000` runs more.
const SCHEDULES: u64 = 10_000;

/// Five seconds before midnight in UTC, so that a calendar day ends, too.
const START: Timestamp = Timestamp::from_micros(1_772_927_995_000_000);

/// Units in the hands of an instance.
struct Hand {
    units: u64,
    grant: Grant,
    /// End of the grant by the instance's clock.
    until: Timestamp,
}

enum Message {
    Lease { sent: Timestamp },
    Answer { sent: Timestamp, at: Timestamp, grant: Grant },
    GiveBack { units: u64, grant: Grant },
}

struct World {
    random: Random,
    terms: Terms,
    account: Account,
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
        let terms = Terms { protocol, limit, hold };
        let (messages, hands, spent) = (Vec::new(), Vec::new(), Vec::new());
        Self { random, terms, account: Account::default(), now: START, messages, hands, spent }
    }

    fn run(&mut self) {
        for _ in 0..10 + self.random.below(60) {
            self.wait();
            match self.random.below(12) {
                0 => {
                    let units = 1 + self.random.below(self.terms.limit.capacity());
                    self.take(units);
                }
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
        let hold = self.terms.hold.as_micros() as u64;
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
        while self.take(1) {}
    }

    /// Takes what any instance holds.
    fn any_hand(&mut self) -> Option<Hand> {
        let which = self.random.below(self.hands.len() as u64) as usize;
        (which < self.hands.len()).then(|| self.hands.swap_remove(which))
    }

    /// A request that is decided by the store.
    fn take(&mut self, units: u64) -> bool {
        let taken = self.terms.take(&mut self.account, units, self.now);
        self.spent.extend(taken.then_some((self.now, units)));
        taken
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
                let until = self.terms.end_for_holder(grant, [sent, at, self.now]);
                self.hands.push(Hand { units: grant.units, grant, until });
            }
            Message::GiveBack { units, grant } => {
                self.terms.give_back(&mut self.account, units, grant.until, self.now);
            }
        }
    }

    /// The store decides a request for one unit and some more.
    fn lease(&mut self, sent: Timestamp) {
        let extra = 1 + self.random.below(self.terms.limit.capacity()) as u32;
        if let Some(admission) = self.terms.lease(&mut self.account, extra, self.now) {
            self.spent.push((self.now, 1));
            let answer = admission.grant.map(|grant| Message::Answer { sent, at: self.now, grant });
            self.messages.extend(answer);
        }
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

    /// Returns `true` if the algorithm admits everything that was spent, in order.
    fn is_within_the_limit(&mut self) -> bool {
        self.spent.sort_by_key(|(at, _)| *at);
        let mut state = State::default();
        let limit = &self.terms.limit;
        self.spent
            .iter()
            .all(|(at, units)| limit.admit(&mut state, Cost::new(*units).unwrap(), *at))
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
    for mistake in Protocol::MISTAKES {
        assert!(excesses(mistake, SCHEDULES) > 0, "{mistake:?}");
    }
}
