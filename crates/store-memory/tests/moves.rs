//! Subjects that were counted in the sketch, once there are free slots again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{sync::Arc, time::Duration};

use headgate::{
    Algorithm, Check, CheckMode, Cost, Key, LeaseId, Limit, ManualClock, Outcome, Spent, Timestamp,
    Verb, algorithm::Period,
};
use headgate_store_memory::MemoryStore;

/// The start of a day, of a minute and of two.
const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// A store with one slot, which is taken for a second.
struct Crowded {
    clock: Arc<ManualClock>,
    store: MemoryStore<Arc<ManualClock>>,
}

impl Crowded {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::builder().capacity(1).clock(Arc::clone(&clock)).build();
        let crowded = Self { clock, store };
        let second = Limit::cooldown(Duration::from_secs(1)).unwrap();
        assert!(crowded.ask(Verb::Acquire, "first", &second, 1).allowed);
        crowded
    }

    fn free_the_slot(&self) {
        self.clock.advance(Duration::from_millis(1_001));
    }

    fn ask(&self, verb: Verb, name: &str, limit: &Limit, cost: u64) -> Outcome {
        self.apply(verb, check(name, limit, cost))
    }

    fn apply(&self, verb: Verb, check: Check<'_>) -> Outcome {
        self.store.apply_now(verb, &check.into())[0]
    }
}

fn check<'a>(name: &'a str, limit: &'a Limit, cost: u64) -> Check<'a> {
    Check::new(Key::new(name).unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
}

/// A limit of `number` with the same window as all others of its algorithm.
fn limit(algorithm: Algorithm, number: u64) -> Limit {
    match algorithm {
        Algorithm::Calendar => Limit::calendar(number, Period::Day, "UTC").unwrap(),
        _ => Limit::new(algorithm, number, Duration::from_mins(2)).unwrap(),
    }
}

#[test]
fn a_made_up_reservation_changes_nothing() {
    let id = LeaseId::from(7);
    let uses = Verb::Use { id, lease: Duration::from_secs(5) };
    for algorithm in Algorithm::RATES {
        let real = limit(algorithm, 100);
        for forged in [1, 100_000].map(|number| limit(algorithm, number)) {
            for (verb, mode) in [
                (Verb::Cancel(id), CheckMode::Report),
                (Verb::Cancel(id), CheckMode::Required),
                (Verb::Commit(id), CheckMode::Required),
                (uses, CheckMode::Required),
                (Verb::Acquire, CheckMode::Probe),
            ] {
                let crowded = Crowded::new();
                assert!(crowded.ask(Verb::Acquire, "late", &real, 100).allowed, "{algorithm}");
                crowded.free_the_slot();
                let before = crowded.ask(Verb::Peek, "late", &real, 100);
                let check = check("late", &forged, 1).with_mode(mode);
                for check in [check, check.spent(Spent::within_the_limit(1))] {
                    crowded.apply(verb, check);
                    let after = crowded.ask(Verb::Peek, "late", &real, 100);
                    assert_eq!(after, before, "{algorithm} {verb:?} {forged:?}");
                }
            }
        }
    }
}

#[test]
fn usage_of_a_large_limit_does_not_shrink_with_a_smaller_one() {
    for algorithm in Algorithm::RATES {
        let (pro, free) = (limit(algorithm, 1_000), limit(algorithm, 10));
        // Denied, admitted, and so little that it is no whole unit of the smaller limit.
        for (used, cost) in [(975, 10), (500, 1), (50, 1)] {
            let crowded = Crowded::new();
            assert!(crowded.ask(Verb::Acquire, "late", &pro, used).allowed, "{algorithm}");
            crowded.free_the_slot();
            let before = crowded.ask(Verb::Peek, "late", &pro, 1);
            for verb in [Verb::Acquire, Verb::Refund] {
                crowded.ask(verb, "late", &free, cost);
                let after = crowded.ask(Verb::Peek, "late", &pro, 1);
                assert!(after.remaining <= before.remaining, "{algorithm} {used}: {after:?}");
            }
            // The usage ends as it would have in the sketch.
            let ends = crowded.ask(Verb::Peek, "late", &pro, 1).reset_after;
            crowded.clock.advance(ends + Duration::from_millis(1));
            assert!(crowded.ask(Verb::Acquire, "late", &pro, 1_000).allowed, "{algorithm} {used}");
        }
    }
}

#[test]
fn a_subject_of_several_limits_gets_a_slot_when_its_usage_has_ended() {
    for algorithm in Algorithm::RATES {
        let crowded = Crowded::new();
        let [small, large] = [10, 1_000].map(|number| limit(algorithm, number));
        crowded.ask(Verb::Acquire, "late", &small, 1);
        crowded.ask(Verb::Acquire, "late", &large, 1);
        crowded.free_the_slot();
        crowded.ask(Verb::Acquire, "late", &large, 1);
        assert_eq!(crowded.store.overflowed(), 3, "{algorithm}");
        let ends = crowded.ask(Verb::Peek, "late", &large, 1).reset_after;
        crowded.clock.advance(ends + Duration::from_millis(1));
        crowded.ask(Verb::Acquire, "late", &small, 1);
        assert_eq!((crowded.store.overflowed(), crowded.store.len()), (3, 1), "{algorithm}");
    }
}

#[test]
fn an_overdraft_ends_with_its_window() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::Calendar] {
        let (crowded, limit) = (Crowded::new(), limit(algorithm, 10));
        let id = LeaseId::from(7);
        let lease = Duration::from_secs(5);
        assert!(crowded.ask(Verb::Reserve { id, lease }, "late", &limit, 1).allowed);
        let spends = check("late", &limit, 1).spent(Spent::with_overdraft(150));
        let settled = crowded.apply(Verb::Commit(id), spends);
        assert!(settled.allowed && settled.remaining == 0, "{algorithm} {settled:?}");
        crowded.clock.advance(settled.reset_after);
        let next = crowded.ask(Verb::Acquire, "late", &limit, 10);
        assert!(next.allowed, "{algorithm}: the next window is complete, {next:?}");
    }
}

#[test]
fn a_subject_without_usage_gets_a_slot_although_others_were_charged_under_several_limits() {
    for algorithm in Algorithm::RATES {
        let crowded = Crowded::new();
        let [small, large] = [10, 1_000].map(|number| limit(algorithm, number));
        assert!(crowded.ask(Verb::Acquire, "late", &small, 1).allowed, "{algorithm}");
        assert!(crowded.ask(Verb::Acquire, "late", &large, 100).allowed, "{algorithm}");
        crowded.free_the_slot();
        assert_eq!(crowded.ask(Verb::Acquire, "new", &small, 1).remaining, 9, "{algorithm}");
        assert_eq!((crowded.store.overflowed(), crowded.store.len()), (2, 1), "{algorithm}");
    }
}

#[test]
fn usage_of_a_fast_bucket_does_not_shrink_with_a_slower_one_of_the_same_burst() {
    let bucket = |rate| Limit::token_bucket(rate, Duration::from_mins(2)).unwrap();
    let [fast, slow] = [100, 50].map(|rate| bucket(rate).with_burst(100).unwrap());
    let crowded = Crowded::new();
    assert!(crowded.ask(Verb::Acquire, "late", &fast, 100).allowed);
    crowded.free_the_slot();
    let before = crowded.ask(Verb::Peek, "late", &fast, 1);
    assert!(crowded.ask(Verb::Acquire, "late", &slow, 1).allowed);
    let after = crowded.ask(Verb::Peek, "late", &fast, 1);
    assert!(after.remaining <= before.remaining, "{before:?}, {after:?}");
}
