//! Logs of sliding windows around the length up to which answers foresee everything.

use std::time::Duration;

use headgate::{
    Batch, Check, Cost, Extra, Key, KeySpace, LeaseId, Limit, Outcome, Timestamp, Verb,
    algorithm::SlidingWindow,
};

use crate::{Fixture, Model, fixture::next_scenario};

const LIMIT: u64 = 800;
const LEASE: Duration = Duration::from_mins(10);
const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// What is pending while the log grows.
#[derive(Clone, Copy, Debug)]
struct Pending {
    reservation: bool,
    grant: bool,
}

/// Compares every answer of the store with the model while a log becomes longer than
/// [`SlidingWindow::MAX_FORESEEN`], with reservations and grants and without.
pub async fn agrees_with_the_model_about_long_logs(fixture: &dyn Fixture) {
    let limit = Limit::sliding_window(LIMIT, Duration::from_hours(1));
    let limit = limit.unwrap_or_else(|error| panic!("{error}"));
    for (reservation, grant) in [(true, false), (false, true), (true, true)] {
        let name = format!("{}long:{}", fixture.key_prefix(), next_scenario());
        let mut log = Log { fixture, limit: &limit, name, model: Model::default(), now: START };
        log.grow(Pending { reservation, grant }).await;
    }
}

struct Log<'a> {
    fixture: &'a dyn Fixture,
    limit: &'a Limit,
    name: String,
    model: Model,
    now: Timestamp,
}

impl Log<'_> {
    async fn grow(&mut self, pending: Pending) {
        let longest = SlidingWindow::MAX_FORESEEN + 8;
        for length in 1..=longest {
            // Some of them several units at once.
            let cost = 1 + u64::from(length % 5 == 0) * 3;
            let verb = match length {
                100 if pending.reservation => reserve(1),
                length if pending.grant && length == longest - 20 => Verb::Lease,
                _ => Verb::Acquire,
            };
            assert!(self.ask(verb, cost).await.allowed, "{length} {pending:?}");
            if length == 10 || length > SlidingWindow::MAX_FORESEEN - 3 {
                self.probe().await;
            }
        }
        // The oldest entries have left the window.
        if self.fixture.set_time(self.now.plus(3_600_000_000 - 20_000_000)) {
            self.now = self.now.plus(3_600_000_000 - 20_000_000);
            self.probe().await;
        }
        self.ask(Verb::Cancel(LeaseId::from(1)), 1).await;
        self.probe().await;
    }

    /// Peeks, denials and what ends without having begun.
    async fn probe(&mut self) {
        for cost in [1, 300, 450, 600, LIMIT] {
            self.ask(Verb::Peek, cost).await;
        }
        self.ask(Verb::Acquire, LIMIT).await;
        self.ask(reserve(2), LIMIT - 1).await;
        self.ask(Verb::Use { id: LeaseId::from(3), lease: LEASE }, 1).await;
    }

    async fn ask(&mut self, verb: Verb, cost: u64) -> Outcome {
        self.now = self.now.plus(u64::from(verb != Verb::Peek) * 1_000_000);
        self.fixture.set_time(self.now);
        let space = KeySpace::new(&self.name, "");
        let key = Key::new("log").unwrap_or_else(|error| panic!("{error}")).within(&space);
        let cost = Cost::new(cost).unwrap_or_else(|error| panic!("{error}"));
        let check = Check::new(key, self.limit, cost).unwrap_or_else(|error| panic!("{error}"));
        let check = check.with_extra(Extra::new(30, Duration::from_mins(30)));
        let answer = self.fixture.store().apply(verb, &Batch::from(check)).await;
        let answer = answer.unwrap_or_else(|error| panic!("{error}"))[0];
        let expected = self.model.apply(verb, &[check], &[answer.at])[0];
        assert_eq!(answer, expected, "{verb:?} of {cost:?}");
        answer
    }
}

fn reserve(id: u64) -> Verb {
    Verb::Reserve { id: LeaseId::from(id), lease: LEASE }
}
