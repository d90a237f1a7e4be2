//! Asking for more while some units are left.

use std::task::{Context, Waker};

use headgate::{Batch, Limit, Verb};

use crate::support::{Instance, Remote, check, second};

/// An instance that holds units, and the first request that asks for more.
async fn hold_many(instance: &Instance, limit: &Limit) {
    for _ in 0..5_000 {
        instance.advance();
        assert!(instance.acquire(&check("u", limit)).await.allowed);
    }
    assert!(instance.held() >= 64, "{:?}", instance.stats());
}

#[tokio::test]
async fn one_request_asks_for_more_and_the_others_go_on() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000_000, second()).unwrap();
    hold_many(&instance, &limit).await;
    remote.take_time();
    let batch = Batch::from(check("u", &limit));
    let mut context = Context::from_waker(Waker::noop());
    let calls = instance.stats().calls;
    let mut asking = loop {
        instance.advance();
        let mut request = Box::pin(instance.apply_batch(Verb::Acquire, &batch));
        if request.as_mut().poll(&mut context).is_pending() {
            break request;
        }
    };
    assert_eq!(instance.stats().calls, calls + 1);
    let held = instance.held();
    assert!(held >= 10, "{held}");
    for _ in 0..held {
        let mut request = Box::pin(instance.apply_batch(Verb::Acquire, &batch));
        assert!(request.as_mut().poll(&mut context).is_ready());
    }
    assert_eq!((instance.held(), instance.stats().calls), (0, calls + 1));
    assert!(asking.as_mut().await.unwrap()[0].allowed);
    assert!(instance.held() > held, "{:?}", instance.stats());
}

#[tokio::test]
async fn a_request_that_asks_in_vain_takes_from_what_is_held() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000_000, second()).unwrap();
    hold_many(&instance, &limit).await;
    remote.fail();
    let (held, calls) = (instance.held(), instance.stats().calls);
    for _ in 0..held {
        assert!(instance.acquire(&check("u", &limit)).await.leased);
    }
    assert_eq!((instance.held(), instance.stats().calls), (0, calls + 1), "it asks once");
    let batch = Batch::from(check("u", &limit));
    assert!(instance.apply_batch(Verb::Acquire, &batch).await.is_err());
}

#[tokio::test]
async fn a_request_that_is_denied_more_takes_from_what_is_held() {
    let (remote, clock) = Remote::new();
    let (instance, other) = (Instance::new(&remote, &clock), Instance::new(&remote, &clock));
    let limit = Limit::fixed_window(100_000, second() * 3_600).unwrap();
    hold_many(&instance, &limit).await;
    let plain = check("u", &limit).without_extra();
    while other.acquire(&plain).await.allowed {}
    let (held, calls) = (instance.held(), instance.stats().calls);
    for _ in 0..held {
        let outcome = instance.acquire(&check("u", &limit)).await;
        assert!(outcome.allowed && outcome.leased, "{outcome:?}");
    }
    assert_eq!((instance.held(), instance.stats().calls), (0, calls + 1), "it asks once");
    assert!(!instance.acquire(&check("u", &limit)).await.allowed);
}

#[tokio::test]
async fn no_more_than_the_share_is_held() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let limit = Limit::token_bucket(1_000, second()).unwrap();
    for _ in 0..20_000 {
        instance.advance();
        instance.acquire(&check("u", &limit)).await;
        assert!(instance.held() <= 100, "{:?}", instance.stats());
    }
}
