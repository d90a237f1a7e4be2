//! Denials that are repeated without a call to the store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use headgate::{
    Batch, Check, CheckMode, Cost, Degraded, FailCause, FailMode, Key, LeaseId, Limit, ManualClock,
    Outcome, Source, Store, StoreFuture, Timestamp, Verb,
};
use headgate_store_leased::LeasedStore;

use crate::support::{Instance, Remote, check, second};

#[tokio::test]
async fn a_denial_is_repeated_without_a_call_until_the_cost_may_be_admitted() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::fixed_window(2, second()).unwrap();
    let check = check("u", &limit).without_extra();
    while instance.acquire(&check).await.allowed {}
    let calls = instance.stats().calls;
    for _ in 0..1_000 {
        clock.advance(Duration::from_micros(59));
        let outcome = instance.acquire(&check).await;
        assert!(!outcome.allowed && outcome.leased, "{outcome:?}");
        assert!(!outcome.retry_after.is_zero());
    }
    assert_eq!(instance.stats().calls, calls);
    assert_eq!(instance.stats().denied_locally, 1_000);
    clock.advance(Duration::from_millis(2));
    assert!(!instance.acquire(&check).await.allowed);
    assert_eq!(instance.stats().calls, calls + 1, "asked again after 60 ms");
    clock.advance(second());
    assert!(instance.acquire(&check).await.allowed);
}

#[tokio::test]
async fn the_first_answer_about_a_subject_is_remembered_if_it_is_a_denial() {
    let (remote, clock) = Remote::new();
    let (instance, other) = (Instance::new(&remote, &clock), Instance::new(&remote, &clock));
    let limit = Limit::fixed_window(2, second()).unwrap();
    let check = check("u", &limit).without_extra();
    while other.acquire(&check).await.allowed {}
    for _ in 0..10 {
        assert!(!instance.acquire(&check).await.allowed);
    }
    assert_eq!(instance.stats().calls, 1);
}

#[tokio::test]
async fn no_more_denials_are_remembered_than_there_is_room_for() {
    let (remote, clock) = Remote::new();
    let instance = Instance::with_room(&remote, &clock, 64);
    let limit = Limit::fixed_window(1, second()).unwrap();
    for name in (0..1_000).map(|n| format!("u{n}")) {
        let check = check(&name, &limit).without_extra();
        while instance.acquire(&check).await.allowed {}
        assert!(!instance.acquire(&check).await.allowed);
    }
    let remembered = instance.stats().denied_locally;
    assert!((32..=64).contains(&remembered), "{remembered}");
}

#[tokio::test]
async fn the_wait_of_a_remembered_denial_is_not_too_short_if_the_call_was_slow() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(10, 10 * second()).unwrap();
    let check = check("u", &limit).without_extra();
    while instance.acquire(&check).await.remaining > 0 {}
    remote.delay(Duration::from_millis(30));
    assert!(!instance.acquire(&check).await.leased);
    remote.delay(Duration::ZERO);
    clock.advance(Duration::from_millis(10));
    let repeated = instance.acquire(&check).await;
    assert!(!repeated.allowed && repeated.leased, "{repeated:?}");
    clock.advance(repeated.retry_after);
    assert!(instance.acquire(&check).await.allowed);
}

#[tokio::test]
async fn a_reset_lifts_a_remembered_denial() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::fixed_window(2, second()).unwrap();
    let check = check("u", &limit);
    while instance.acquire(&check).await.allowed {}
    instance.apply(Verb::Reset, &check).await;
    assert!(instance.acquire(&check).await.allowed);
}

#[tokio::test]
async fn a_remembered_denial_stays_if_nothing_has_returned() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::fixed_window(2, second()).unwrap();
    let check = check("u", &limit).without_extra();
    let id = LeaseId::from(1);
    let lease = second();
    assert!(instance.apply(Verb::Reserve { id, lease }, &check).await.allowed);
    while instance.acquire(&check).await.allowed {}
    let calls = instance.stats().calls;
    instance.apply(Verb::Cancel(LeaseId::from(2)), &check).await;
    instance.apply(Verb::Cancel(id), &check.with_mode(CheckMode::Report)).await;
    assert!(!instance.acquire(&check).await.allowed);
    assert_eq!(instance.stats().calls, calls);
    instance.apply(Verb::Cancel(id), &check).await;
    assert!(instance.acquire(&check).await.allowed);
}

#[tokio::test]
async fn a_thousand_requests_of_a_denied_subject_ask_once() {
    let (remote, clock) = Remote::new();
    let instance = Arc::new(Instance::new(&remote, &clock));
    let limit = Limit::fixed_window(2, second()).unwrap();
    while instance.acquire(&check("u", &limit).without_extra()).await.allowed {}
    remote.take_time();
    // The denial is not in force any more, and the next call is denied again.
    clock.advance(Duration::from_millis(61));
    let calls = instance.stats().calls;
    let ask = || {
        let requests = (0..1_000).map(|_| {
            let (instance, limit) = (Arc::clone(&instance), limit.clone());
            let ask = async move { instance.acquire(&check("u", &limit).without_extra()).await };
            tokio::spawn(ask)
        });
        join_all(requests)
    };
    assert!(ask().await.into_iter().all(|outcome| !outcome.unwrap().allowed));
    assert_eq!(instance.stats().calls, calls + 1);
    // In the next window the first one is admitted, and the others need not wait in line.
    clock.advance(second());
    let admitted = ask().await.into_iter().filter(|it| it.as_ref().unwrap().allowed).count();
    assert_eq!(admitted, 2);
}

#[tokio::test]
async fn a_remembered_denial_of_a_batch_has_the_answers_of_all_its_limits() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let (short, long) = (Limit::sliding_window(2, second()), Duration::from_hours(1));
    let (short, long) = (short.unwrap(), Limit::sliding_window(2, long).unwrap());
    let both = [check("short", &short), check("long", &long), check("other", &long)];
    let both = Batch::new(both.map(Check::without_extra)).unwrap();
    let acquire = async || instance.apply_batch(Verb::Acquire, &both).await.unwrap();
    while acquire().await.iter().all(|outcome| outcome.allowed) {
        instance.apply(Verb::Reset, &check("other", &long)).await;
    }
    let calls = instance.stats().calls;
    let outcomes = acquire().await;
    assert_eq!(instance.stats().calls, calls);
    let denied: Vec<bool> = outcomes.iter().map(|outcome| !outcome.allowed).collect();
    assert_eq!(denied, [true, true, false]);
    assert!(outcomes[1].retry_after > Duration::from_mins(59), "{outcomes:?}");
    assert_eq!(outcomes[2].remaining, 2);
    // A limit about which nothing is known is asked.
    let more = [check("short", &short), check("new", &long)];
    let more = Batch::new(more.map(Check::without_extra)).unwrap();
    let outcomes = instance.apply_batch(Verb::Acquire, &more).await.unwrap();
    assert_eq!((outcomes[0].allowed, outcomes[1].remaining), (false, 2));
    assert_eq!(instance.stats().calls, calls + 1);
}

#[tokio::test]
async fn a_remembered_denial_of_a_batch_admits_no_other_limit_that_has_too_few_units() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limits = [2, 10].map(|units| Limit::fixed_window(units, second()).unwrap());
    let of = |name, limit, cost| {
        Check::new(Key::new(name).unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
    };
    let few = of("few", &limits[0], 1);
    while instance.acquire(&few).await.allowed {}
    // Several times: of a subject that is seen once nothing is known.
    for _ in 0..4 {
        assert!(instance.acquire(&of("more", &limits[1], 2)).await.allowed);
    }
    let batch = Batch::new([few, of("more", &limits[1], 5)]).unwrap();
    let outcomes = instance.apply_batch(Verb::Acquire, &batch).await.unwrap();
    assert!(outcomes.iter().all(|outcome| !outcome.allowed), "{outcomes:?}");
}

/// A store whose circuit breakers are its own, and that denies by its failure mode.
struct Degrading(AtomicU64);

impl Store for Degrading {
    fn apply<'a>(&'a self, _: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        self.0.fetch_add(1, Relaxed);
        let denied = batch.checks().iter().map(|check| {
            let limit = check.limit().capacity();
            let now = Timestamp::from_micros(1);
            let mut denial = Outcome::denial(limit, 0, second(), second(), now);
            let mode = Source::FailMode(FailMode::Closed);
            denial.degraded = Some(Degraded::new(mode, FailCause::Timeout));
            denial
        });
        StoreFuture::ready(Ok(denied.collect()))
    }

    fn has_breakers(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_denial_that_the_store_did_not_give_is_not_remembered() {
    let store = Arc::new(Degrading(AtomicU64::new(0)));
    let leased = LeasedStore::with_clock(Arc::clone(&store), ManualClock::default());
    assert!(leased.has_breakers(), "as the store says");
    let limit = Limit::fixed_window(2, second()).unwrap();
    let batch = Batch::from(check("u", &limit));
    for calls in 1..=3 {
        assert!(!leased.apply(Verb::Acquire, &batch).await.unwrap()[0].allowed);
        assert_eq!(store.0.load(Relaxed), calls);
    }
}

#[tokio::test]
async fn a_larger_cost_than_the_denied_one_has_a_wait_of_its_own() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(10, second()).unwrap();
    let of = |cost| Check::new(Key::new("u").unwrap(), &limit, Cost::new(cost).unwrap()).unwrap();
    assert!(instance.acquire(&of(10)).await.allowed);
    for _ in 0..2 {
        let waits = [instance.acquire(&of(1)).await, instance.acquire(&of(5)).await];
        let waits = waits.map(|outcome| outcome.retry_after.as_millis());
        assert_eq!(waits, [100, 500]);
    }
}
