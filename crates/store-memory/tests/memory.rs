//! The memory store passes the conformance suite and stays within its bounds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use headgate::{
    Algorithm, Batch, Check, CheckMode, Cost, Key, KeySpace, LeaseId, Limit, ManualClock, Outcome,
    Store, SyncStore, Timestamp, Verb,
};
use headgate_store_conformance::{Fixture, golden, suite};
use headgate_store_memory::{MemoryStore, NumericKey};

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

struct InMemory {
    clock: Arc<ManualClock>,
    store: MemoryStore<Arc<ManualClock>>,
}

impl InMemory {
    fn with_capacity(capacity: usize) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::builder().capacity(capacity).clock(Arc::clone(&clock)).build();
        Self { clock, store }
    }

    fn fixture() -> Rc<dyn Fixture> {
        Rc::new(Self::with_capacity(100_000))
    }

    fn acquire(&self, name: &str, limit: &Limit) -> Outcome {
        self.store.acquire(Key::new(name).unwrap(), limit, Cost::ONE).unwrap()
    }

    fn exhaust(&self, name: &str, limit: &Limit) {
        for _ in 0..limit.capacity() {
            assert!(self.acquire(name, limit).allowed);
        }
        assert!(!self.acquire(name, limit).allowed);
    }
}

impl Fixture for InMemory {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn set_time(&self, now: Timestamp) -> bool {
        self.clock.set(now);
        true
    }
}

/// A store in memory never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory store waited"),
    }
}

fn per_minute(limit: u64) -> Limit {
    Limit::token_bucket(limit, Duration::from_secs(60)).unwrap()
}

#[test]
fn agrees_with_the_model() {
    suite::agrees_with_the_model(InMemory::fixture, 2_000, |scenario| at_once(scenario));
}

#[test]
fn agrees_with_the_model_about_long_logs() {
    at_once(suite::agrees_with_the_model_about_long_logs(&InMemory::with_capacity(100_000)));
}

#[test]
fn gives_the_golden_vectors() {
    at_once(golden::replay(InMemory::fixture));
}

#[test]
fn stands_still_when_its_clock_steps_back() {
    at_once(suite::stands_still_when_its_clock_steps_back(&InMemory::with_capacity(100_000)));
}

#[test]
fn refuses_one_reservation_too_many_until_another_ends() {
    let fixture = InMemory::with_capacity(100_000);
    at_once(suite::refuses_one_reservation_too_many_until_another_ends(&fixture));
}

#[test]
fn clones_of_a_shared_store_decide_together() {
    let store = Arc::new(InMemory::with_capacity(10).store);
    let limit = Limit::fixed_window(2, Duration::from_hours(1)).unwrap();
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
    let other: &dyn SyncStore = &Arc::clone(&store);
    assert!(store.apply_one(Verb::Acquire, check).allowed);
    assert!(other.apply_now(Verb::Acquire, &check.into())[0].allowed);
    assert!(!other.apply_one(Verb::Acquire, check).allowed);
}

#[test]
fn a_limit_that_comes_with_a_reservation_raises_no_rate() {
    let store = InMemory::with_capacity(100_000);
    at_once(suite::a_limit_that_comes_with_a_reservation_raises_no_rate(&store));
}

#[test]
fn remembers_the_latest_settlements() {
    at_once(suite::remembers_the_latest_settlements(&InMemory::with_capacity(100_000)));
}

#[test]
fn streams_stop_at_the_limit() {
    at_once(suite::streams_stop_at_the_limit(&InMemory::with_capacity(100_000)));
}

#[test]
fn a_refund_under_a_smaller_limit_returns_no_more() {
    at_once(suite::a_refund_under_a_smaller_limit_returns_no_more(&InMemory::with_capacity(1_000)));
}

#[test]
fn agrees_with_the_model_about_many_holders() {
    at_once(suite::agrees_with_the_model_about_many_holders(&InMemory::with_capacity(1_000)));
}

#[test]
fn never_more_holders_than_places() {
    at_once(suite::never_more_holders_than_places(&InMemory::with_capacity(1_000)));
}

#[test]
fn a_place_is_free_when_its_lease_ends() {
    at_once(suite::a_place_is_free_when_its_lease_ends(&InMemory::with_capacity(1_000)));
}

#[test]
fn lists_the_holders_of_a_subject() {
    at_once(suite::lists_the_holders_of_a_subject(&InMemory::with_capacity(1_000)));
}

#[test]
fn ten_thousand_holders_have_a_place_each() {
    let memory = InMemory::with_capacity(10_000);
    at_once(suite::thousands_of_holders_have_a_place_each(&memory, 10_000));
    assert!(memory.store.is_empty(), "{} slots", memory.store.len());
}

#[test]
fn a_full_store_admits_no_new_holder_and_forgets_none() {
    let memory = InMemory::with_capacity(10);
    let limit = Limit::concurrency(8, Duration::from_secs(60)).unwrap();
    let apply = |name: &str, verb| {
        let check = Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        memory.store.apply_now(verb, &check.into())[0]
    };
    let reserve = |n: u64| Verb::Reserve { id: LeaseId::from(n), lease: Duration::from_secs(9) };
    for n in 1..=5 {
        assert!(apply("a", reserve(n)).allowed && apply("b", reserve(n)).allowed, "{n}");
    }
    assert_eq!(memory.store.len(), 2, "a subject takes one slot");
    for name in ["a", "b", "c"] {
        let denied = apply(name, reserve(6));
        assert!(!denied.allowed && denied.remaining == 0, "{name}: {denied:?}");
        assert_eq!(denied.retry_after, Duration::from_secs(1), "{name}");
        assert!(!apply(name, Verb::Peek).allowed, "{name}");
    }
    assert!(apply("a", reserve(3)).allowed, "a repetition takes nothing");
    assert!(apply("a", Verb::Use { id: LeaseId::from(3), lease: limit.window().unwrap() }).allowed);
    assert!(apply("a", Verb::Cancel(LeaseId::from(4))).allowed);
    assert!(apply("c", reserve(6)).allowed);
    memory.clock.advance(Duration::from_secs(9));
    assert_eq!(apply("b", Verb::Peek).remaining, 8);
    assert_eq!(apply("a", Verb::Peek).remaining, 7, "one was renewed");
    for n in 1..=8 {
        assert!(
            apply("d", reserve(n)).allowed,
            "the leases of subjects that nobody asks for ended"
        );
    }
}

#[test]
fn threads_never_get_more_than_the_limit() {
    let store = MemoryStore::default();
    suite::never_admits_more_than_the_limit(4, |shot| {
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| at_once(shot.fire(&store, ""))));
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        })
    });
}

#[test]
fn a_batch_is_all_or_nothing_while_threads_compete_for_its_parts() {
    let store = MemoryStore::default();
    let limit = Limit::fixed_window(100, Duration::from_hours(24 * 366)).unwrap();
    let take = |first: &str, second: &str| {
        let check = |name| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        let batch = Batch::new([check(first), check(second)]).unwrap();
        (0..100)
            .filter(|_| store.apply_now(Verb::Acquire, &batch).iter().all(|o| o.allowed))
            .count()
    };
    // The keys are in opposite order: locking shards in the order of the batch would deadlock.
    let taken: usize = thread::scope(|scope| {
        let threads = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")];
        let threads = threads.map(|(first, second)| scope.spawn(move || take(first, second)));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    assert_eq!(taken, 100, "every batch needs b");
    let left = |name: &str| {
        let check = Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        store.apply_now(Verb::Peek, &check.into())[0].remaining
    };
    assert_eq!(left("b"), 0);
    assert_eq!(left("a") + left("c"), 100, "what was refused took nothing");
}

#[test]
fn a_flood_of_new_keys_neither_grows_memory_nor_evicts_live_states() {
    let memory = InMemory::with_capacity(1_000);
    let limit = per_minute(5);
    memory.exhaust("offender", &limit);
    assert_eq!(memory.acquire("regular", &limit).remaining, 4);

    for i in 0..100_000 {
        memory.acquire(&format!("flood:{i}"), &limit);
    }
    assert!(memory.store.len() <= 1_000, "{} slots", memory.store.len());
    assert!(!memory.acquire("offender", &limit).allowed);
    assert_eq!(memory.acquire("regular", &limit).remaining, 3);
}

#[test]
fn expired_states_make_room() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar) {
        let memory = InMemory::with_capacity(10);
        let limit = Limit::new(algorithm, 5, Duration::from_secs(60)).unwrap();
        for round in 0..5 {
            let mut whole = Duration::ZERO;
            for i in 0..10 {
                let outcome = memory.acquire(&format!("{round}:{i}"), &limit);
                assert_eq!(outcome.remaining, 4, "{algorithm}");
                whole = outcome.reset_after;
            }
            memory.clock.advance(whole + Duration::from_secs(1));
        }
        assert_eq!(memory.store.overflowed(), 0, "{algorithm}");
    }
}

#[test]
fn every_algorithm_respects_the_capacity() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar) {
        let memory = InMemory::with_capacity(100);
        let limit = Limit::new(algorithm, 50, Duration::from_secs(60)).unwrap();
        memory.exhaust("offender", &limit);
        for i in 0..10_000 {
            memory.clock.advance(Duration::from_micros(1));
            memory.acquire(&format!("flood:{}", i % 500), &limit);
        }
        assert!(memory.store.len() <= 100, "{algorithm}: {} slots", memory.store.len());
        assert!(!memory.acquire("offender", &limit).allowed, "{algorithm}");
    }
}

#[test]
fn a_log_takes_as_many_slots_as_it_has_entries() {
    let memory = InMemory::with_capacity(8);
    let limit = Limit::sliding_window(20, Duration::from_secs(60)).unwrap();
    for second in 1..=20 {
        assert!(memory.acquire("u", &limit).allowed, "{second}");
        // Beyond the capacity, the newest entries are merged into one.
        assert_eq!(memory.store.len(), second.min(8), "{second}");
        memory.clock.advance(Duration::from_secs(1));
    }
    assert!(!memory.acquire("u", &limit).allowed, "nothing of it is forgotten");
    assert!(!memory.store.is_empty());
    memory.clock.advance(Duration::from_secs(60));
    assert_eq!(memory.acquire("u", &limit).remaining, 19, "all of it has left the window");
}

#[test]
fn settings_out_of_range_are_adjusted() {
    let store = MemoryStore::builder().capacity(0).overflow_bytes(0).build();
    let limit = per_minute(1);
    for name in ["a", "b", "c"] {
        let acquire = || store.acquire(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap().allowed;
        assert_eq!([acquire(), acquire()], [true, false], "{name}");
    }
    assert_eq!(store.len(), 1);
}

#[test]
fn a_single_check_is_answered_like_a_batch_of_one() {
    let (one, batch) = (InMemory::with_capacity(100), InMemory::with_capacity(100));
    let limit = per_minute(3);
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
    let (id, lease) = (LeaseId::from(7), Duration::from_secs(5));
    let steps = [
        Verb::Acquire,
        Verb::Peek,
        Verb::Acquire,
        Verb::Refund,
        Verb::Reserve { id, lease },
        Verb::Peek,
        Verb::Commit(id),
        Verb::Acquire,
        Verb::Acquire,
        Verb::Reset,
        Verb::Peek,
    ];
    for (i, verb) in steps.into_iter().enumerate() {
        let expected = batch.store.apply_now(verb, &check.into())[0];
        assert_eq!(one.store.apply_one(verb, check), expected, "step {i}: {verb:?}");
    }
    // A check that only reports takes nothing either.
    let report = check.with_mode(CheckMode::Report);
    assert_eq!(one.store.apply_one(Verb::Acquire, report).remaining, 3);
    assert_eq!(one.store.apply_one(Verb::Peek, check).remaining, 3);
}

#[test]
fn a_cost_above_the_limit_is_an_error_and_takes_nothing() {
    let memory = InMemory::with_capacity(100);
    let limits = [per_minute(5), Limit::fixed_window(5, Duration::from_secs(60)).unwrap()];
    for (space, limit) in limits.iter().enumerate() {
        let (key, number) = (Key::new("u").unwrap(), NumericKey { space: space as u64, number: 7 });
        let (all, more) = (Cost::new(5).unwrap(), Cost::new(6).unwrap());
        assert!(memory.store.acquire(key, limit, more).is_err());
        assert!(memory.store.acquire_numeric(number, limit, more).is_err());
        assert!(memory.store.admit_numeric(number, limit, more).is_err());
        assert!(memory.store.acquire(key, limit, all).unwrap().allowed);
        assert!(memory.store.acquire_numeric(number, limit, all).unwrap().allowed);
    }
}

#[test]
fn reservations_count_against_the_capacity_and_expire() {
    let memory = InMemory::with_capacity(100);
    let limit = per_minute(1_000);
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap().into();
    for id in 0..10 {
        let lease = Duration::from_secs(5);
        memory.store.apply_now(Verb::Reserve { id: LeaseId::from(id), lease }, &check);
    }
    assert_eq!(memory.store.len(), 11);
    memory.clock.advance(Duration::from_secs(5));
    assert_eq!(memory.store.apply_now(Verb::Peek, &check)[0].remaining, 1_000);
    assert!(memory.store.is_empty());
}

#[test]
fn a_reset_deletes_the_state() {
    let memory = InMemory::with_capacity(100);
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar) {
        let limit = Limit::new(algorithm, 3, Duration::from_secs(60)).unwrap();
        memory.exhaust("u", &limit);
        let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
        let outcome = memory.store.apply_now(Verb::Reset, &check.into())[0];
        assert_eq!(outcome.remaining, 3, "{algorithm}");
    }
    assert!(memory.store.is_empty());
}

#[test]
fn a_changed_limit_applies_at_once_and_admits_nothing_twice() {
    let memory = InMemory::with_capacity(100);
    memory.exhaust("u", &per_minute(5));
    assert_eq!(memory.acquire("u", &per_minute(8)).remaining, 2, "raised by three");
    let lowered = memory.acquire("u", &per_minute(2));
    assert!(!lowered.allowed && lowered.remaining == 0, "used six of two");
    assert_eq!(
        lowered.retry_after,
        Duration::from_secs(150),
        "five must flow back at two a minute"
    );
}

#[test]
fn numeric_keys_count_like_text_keys_and_separately() {
    for algorithm in Algorithm::RATES.into_iter().filter(|name| *name != Algorithm::Calendar) {
        let memory = InMemory::with_capacity(1);
        let limit = Limit::new(algorithm, 2, Duration::from_secs(60)).unwrap();
        let acquire = |space, number| {
            let subject = NumericKey { space, number };
            memory.store.acquire_numeric(subject, &limit, Cost::ONE).unwrap()
        };
        assert_eq!(acquire(1, 7).remaining, 1, "{algorithm}");
        assert!(acquire(1, 7).allowed, "{algorithm}");
        let denied = acquire(1, 7);
        assert!(!denied.allowed && denied.retry_after > Duration::ZERO, "{algorithm}");
        // Beyond the capacity, other subjects are still counted separately, and the existing one
        // stays denied.
        for (space, number) in [(2, 7), (1, 8)] {
            assert!(acquire(space, number).allowed && acquire(space, number).allowed);
            assert!(!acquire(space, number).allowed, "{algorithm}");
        }
        assert!(!acquire(1, 7).allowed, "{algorithm}");
        assert_eq!(memory.store.overflowed(), 6, "{algorithm}");
    }
}

#[test]
fn admit_numeric_returns_an_outcome_only_for_denials() {
    let memory = InMemory::with_capacity(1_000);
    let limits = [per_minute(2), Limit::fixed_window(2, Duration::from_secs(60)).unwrap()];
    for (space, limit) in limits.iter().enumerate() {
        let subject = NumericKey { space: space as u64, number: 7 };
        let admit = || memory.store.admit_numeric(subject, limit, Cost::ONE).unwrap();
        assert_eq!([admit(), admit()], [None, None]);
        let denied = admit().unwrap();
        assert!(!denied.allowed && denied.remaining == 0);
        assert_eq!(denied, memory.store.acquire_numeric(subject, limit, Cost::ONE).unwrap());
        let too_much = Cost::new(3).unwrap();
        assert!(memory.store.admit_numeric(subject, limit, too_much).is_err());
    }
}

#[test]
fn a_key_is_identified_by_its_text_however_it_is_split() {
    let memory = InMemory::with_capacity(100);
    let cooldown = Limit::cooldown(Duration::from_secs(60)).unwrap();
    let long = "x".repeat(300);
    let texts = ["ratelimit:user:u1:60".to_owned(), format!("ratelimit:{long}:60")];
    for text in &texts {
        for cut in 0..=10 {
            let space = KeySpace::new(&text[..cut], &text[text.len() - cut / 5..]);
            let key = Key::new(&text[cut..text.len() - cut / 5]).unwrap().within(&space);
            assert_eq!(key.to_string(), *text);
            let outcome = memory.store.acquire(key, &cooldown, Cost::ONE).unwrap();
            assert_eq!(outcome.allowed, cut == 0, "{key}");
        }
    }
}
