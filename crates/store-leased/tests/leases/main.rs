//! Leases over a store in memory whose calls take time, fail, and lose answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod exactness;
mod support;

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use headgate::{Batch, Limit, Verb};

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
async fn a_denial_is_repeated_without_a_call_until_the_cost_may_be_admitted() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::fixed_window(2, second()).unwrap();
    let check = check("u", &limit).without_extra();
    while instance.acquire(&check).await.allowed {}
    let calls = instance.stats().calls;
    for _ in 0..1_000 {
        clock.advance(Duration::from_micros(49));
        let outcome = instance.acquire(&check).await;
        assert!(!outcome.allowed && outcome.leased, "{outcome:?}");
        assert!(!outcome.retry_after.is_zero());
    }
    assert_eq!(instance.stats().calls, calls);
    assert_eq!(instance.stats().denied_locally, 1_000);
    clock.advance(Duration::from_millis(2));
    assert!(!instance.acquire(&check).await.allowed);
    assert_eq!(instance.stats().calls, calls + 1, "asked again after 50 ms");
    clock.advance(second());
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
    clock.advance(Duration::from_millis(195));
    instance.store().give_back_due().await;
    assert_eq!(instance.stats().given_back, held);
    assert_eq!(instance.peek(&check("u", &after)).await.remaining, 900 - 21);
}
