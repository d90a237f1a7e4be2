//! Leases over a store in memory whose calls take time, fail, and lose answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exactness;
mod refill;
mod support;

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
    Outcome, Place, Source, Store, StoreFuture, Timestamp, Verb,
};
use headgate_store_leased::LeasedStore;

use support::{Instance, Remote, check, second};

#[tokio::test]
async fn a_busy_subject_needs_few_calls() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000_000, second()).unwrap();
    for _ in 0..10_000 {
        clock.advance(Duration::from_micros(100));
        assert!(instance.acquire(&check("u", &limit)).await.allowed);
    }
    let stats = instance.stats();
    assert!(stats.calls < 40, "{stats:?}");
    assert!(stats.admitted_locally > 9_900, "{stats:?}");
}

#[tokio::test]
async fn a_subject_that_is_seen_once_in_a_while_holds_nothing() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    for _ in 0..10 {
        clock.advance(Duration::from_millis(201));
        assert!(instance.acquire(&check("u", &limit)).await.allowed);
    }
    let stats = instance.stats();
    assert_eq!((stats.calls, stats.granted), (10, 0));
}

#[tokio::test]
async fn a_check_without_an_extra_is_always_decided_by_the_store() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    let check = check("u", &limit).without_extra();
    for left in (900..1_000).rev() {
        let outcome = instance.acquire(&check).await;
        assert_eq!((outcome.remaining, outcome.leased), (left, false));
    }
    assert_eq!(instance.stats().calls, 100);
}

#[tokio::test]
async fn a_place_keeps_the_name_of_its_lease() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::concurrency(1, second()).unwrap();
    let (id, lease) = (LeaseId::random(), second());
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
    let held = check.holding(Place { id, lease });
    assert!(instance.acquire(&held).await.allowed);
    // The same lease again is not another place.
    assert!(instance.acquire(&held).await.allowed);
    assert!(!instance.acquire(&check).await.allowed);
    assert!(instance.apply(Verb::Cancel(id), &check).await.allowed);
    assert!(instance.acquire(&check).await.allowed);
}

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
async fn a_thousand_requests_at_once_make_a_handful_of_calls() {
    let (remote, clock) = Remote::new();
    let instance = Arc::new(Instance::new(&remote, &clock));
    let limit = Limit::token_bucket(100_000, second()).unwrap();
    remote.take_time();
    let requests = (0..1_000).map(|_| {
        let (instance, limit) = (Arc::clone(&instance), limit.clone());
        tokio::spawn(async move { instance.acquire(&check("u", &limit)).await.allowed })
    });
    let allowed = join_all(requests).await;
    assert!(allowed.into_iter().all(|allowed| allowed.unwrap()));
    let stats = instance.stats();
    assert!(stats.calls <= 5, "{stats:?}");
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

#[tokio::test]
async fn what_is_held_of_a_subject_has_an_end() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    let check = check("u", &limit);
    assert_eq!(instance.store().held_of(check.key()), None);
    let mut last = instance.acquire(&check).await;
    while !last.leased {
        last = instance.acquire(&check).await;
    }
    let held = instance.store().held_of(check.key());
    assert_eq!(held.map_or(0, |held| held.units), instance.held());
    if let Some(held) = held {
        assert!(held.until > last.at && held.until.since(last.at) <= 200_000, "{held:?}");
    }
    clock.advance(Duration::from_millis(200));
    assert_eq!(instance.store().held_of(check.key()), None);
}

#[tokio::test]
async fn a_request_that_is_dropped_lets_the_others_go_on() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    let check = check("u", &limit);
    remote.take_time();
    {
        let batch = Batch::from(check);
        let mut first = Box::pin(instance.apply_batch(Verb::Acquire, &batch));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
    }
    assert!(instance.acquire(&check).await.allowed);
}

#[tokio::test]
async fn what_is_held_is_handed_out_while_the_store_is_down() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    let check = check("u", &limit);
    while instance.stats().granted < 10 {
        instance.acquire(&check).await;
    }
    remote.fail();
    let batch = Batch::from(check);
    let mut admitted = 0;
    while instance.apply_batch(Verb::Acquire, &batch).await.is_ok() {
        admitted += 1;
    }
    assert!(admitted >= 5, "{admitted}");
}

#[tokio::test]
async fn a_batch_that_the_store_denies_takes_nothing_from_what_is_held() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let wide = Limit::token_bucket(1_000, second()).unwrap();
    let narrow = Limit::fixed_window(1, second()).unwrap();
    while instance.held() < 5 {
        instance.acquire(&check("wide", &wide)).await;
    }
    let batch =
        Batch::new([check("wide", &wide), check("narrow", &narrow).without_extra()]).unwrap();
    let first = instance.apply_batch(Verb::Acquire, &batch).await.unwrap();
    assert!(first.iter().all(|outcome| outcome.allowed));
    let held = instance.held();
    let second = instance.apply_batch(Verb::Acquire, &batch).await.unwrap();
    assert_eq!([second[0].allowed, second[1].allowed], [true, false]);
    assert_eq!(instance.held(), held);
}

#[tokio::test]
async fn what_is_not_used_goes_back_before_the_grant_ends() {
    let (remote, clock) = Remote::new();
    let (instance, other) = (Instance::new(&remote, &clock), Instance::new(&remote, &clock));
    let limit = Limit::fixed_window(1_000, Duration::from_hours(1)).unwrap();
    let check = check("u", &limit);
    for _ in 0..20 {
        instance.acquire(&check).await;
    }
    let held = instance.held();
    assert!(held > 0);
    let before = other.peek(&check).await.remaining;
    clock.advance(Duration::from_millis(195));
    instance.store().give_back_due().await;
    assert_eq!(instance.held(), 0);
    assert_eq!(other.peek(&check).await.remaining, before + held);
    assert_eq!(instance.stats().given_back, held);
}

#[tokio::test]
async fn a_process_that_ends_gives_everything_back() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::sliding_window(1_000, Duration::from_hours(1)).unwrap();
    for name in ["a", "b", "c"] {
        for _ in 0..20 {
            instance.acquire(&check(name, &limit)).await;
        }
    }
    assert!(instance.held() > 0);
    instance.store().give_back_all().await;
    for name in ["a", "b", "c"] {
        assert_eq!(instance.peek(&check(name, &limit)).await.remaining, 980);
    }
}

#[tokio::test]
async fn units_of_an_earlier_limit_are_not_handed_out_but_go_back() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let hour = Duration::from_hours(1);
    let (before, after) = (Limit::fixed_window(1_000, hour), Limit::fixed_window(900, hour));
    let (before, after) = (before.unwrap(), after.unwrap());
    for _ in 0..20 {
        instance.acquire(&check("u", &before)).await;
    }
    let held = instance.held();
    let outcome = instance.acquire(&check("u", &after)).await;
    assert!(outcome.allowed && !outcome.leased, "{outcome:?}");
    instance.store().give_back_due().await;
    assert_eq!(instance.stats().given_back, held, "at once");
    let left = instance.peek(&check("u", &after)).await.remaining;
    assert_eq!(left + instance.held(), 900 - 21);
}

#[tokio::test]
async fn units_of_many_subjects_go_back_in_one_call() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::fixed_window(1_000, Duration::from_hours(1)).unwrap();
    let names: Vec<String> = (0..250).map(|n| format!("u{n}")).collect();
    for _ in 0..13 {
        for name in &names {
            instance.acquire(&check(name, &limit)).await;
        }
    }
    let held = instance.held();
    assert!(held > 250, "{held}");
    instance.store().give_back_all().await;
    let stats = instance.stats();
    assert_eq!((stats.return_calls, stats.given_back, stats.lost), (3, held, 0));
}

/// Each of a thousand requests needs two subjects.
#[tokio::test]
async fn requests_with_several_subjects_wait_for_one_call_too() {
    let (remote, clock) = Remote::new();
    let instance = Arc::new(Instance::new(&remote, &clock));
    let limit = Limit::token_bucket(100_000, second()).unwrap();
    remote.take_time();
    let requests = (0..1_000).map(|n| {
        let (instance, limit) = (Arc::clone(&instance), limit.clone());
        tokio::spawn(async move {
            let mut checks = [check("a", &limit), check("b", &limit)];
            checks.rotate_left(n % 2);
            let batch = Batch::new(checks).unwrap();
            let outcomes = instance.apply_batch(Verb::Acquire, &batch).await.unwrap();
            outcomes.iter().all(|outcome| outcome.allowed)
        })
    });
    let allowed = join_all(requests).await;
    assert!(allowed.into_iter().all(|allowed| allowed.unwrap()));
    let stats = instance.stats();
    assert!(stats.calls <= 20, "{stats:?}");
}

#[tokio::test]
async fn requests_that_wait_for_a_call_that_fails_do_not_call_again() {
    let (remote, clock) = Remote::new();
    let instance = Arc::new(Instance::new(&remote, &clock));
    let limit = Limit::token_bucket(100_000, second()).unwrap();
    instance.acquire(&check("u", &limit)).await;
    remote.take_time();
    remote.fail();
    let requests = (0..1_000).map(|_| {
        let (instance, limit) = (Arc::clone(&instance), limit.clone());
        tokio::spawn(async move {
            instance.apply_batch(Verb::Acquire, &Batch::from(check("u", &limit))).await.is_err()
        })
    });
    let failed = join_all(requests).await;
    assert!(failed.into_iter().all(|failed| failed.unwrap()));
    assert_eq!(instance.stats().calls, 2);
}

/// The bucket returns a unit every millisecond, and is asked for more than that.
#[tokio::test]
async fn a_fast_limit_that_is_used_up_is_not_asked_for_every_unit() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    let mut admitted = 0;
    for _ in 0..20_000 {
        clock.advance(Duration::from_micros(100));
        admitted += u64::from(instance.acquire(&check("u", &limit)).await.allowed);
    }
    // 1,000 at first, and as many a second; what is granted returns a hold later at most.
    let stats = instance.stats();
    assert!((2_750..=3_000).contains(&admitted), "{admitted}: {stats:?}");
    assert!(stats.calls < 100, "{stats:?}");
}

/// Far more subjects than there is room for; most are seen once, one is busy.
#[tokio::test]
async fn a_flood_of_subjects_does_not_displace_a_busy_one() {
    let (remote, clock) = Remote::new();
    let instance = Instance::with_room(&remote, &clock, 64);
    let limit = Limit::token_bucket(10_000, second()).unwrap();
    for n in 0..20_000 {
        clock.advance(Duration::from_micros(100));
        let name = if n % 2 == 0 { "busy".to_owned() } else { format!("u{n}") };
        assert!(instance.acquire(&check(&name, &limit)).await.allowed);
    }
    let stats = instance.stats();
    assert!(stats.admitted_locally > 9_500, "{stats:?}");
}
