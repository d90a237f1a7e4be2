//! Leases over a store in memory whose calls take time, fail, and lose answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod denials;
mod exactness;
mod refill;
mod returns;
mod support;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use headgate::{Batch, Check, Cost, Key, LeaseId, Limit, Place, Store as _, Verb};

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
async fn a_subject_that_comes_back_once_in_a_hold_is_not_asked_for_in_advance() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    for _ in 0..10 {
        clock.advance(Duration::from_millis(150));
        assert!(instance.acquire(&check("u", &limit)).await.allowed);
    }
    assert_eq!((instance.stats().calls, remote.leases()), (10, 0));
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
async fn a_place_that_another_instance_gives_back_is_free_at_once() {
    let (remote, clock) = Remote::new();
    let (instance, other) = (Instance::new(&remote, &clock), Instance::new(&remote, &clock));
    let limit = Limit::concurrency(1, second()).unwrap();
    let (id, lease) = (LeaseId::random(), second());
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
    assert!(other.acquire(&check.holding(Place { id, lease })).await.allowed);
    assert!(!instance.acquire(&check).await.allowed);
    assert!(other.apply(Verb::Cancel(id), &check).await.allowed);
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

#[test]
fn leases_add_no_circuit_breakers() {
    let (remote, clock) = Remote::new();
    assert!(!Instance::new(&remote, &clock).store().has_breakers());
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
