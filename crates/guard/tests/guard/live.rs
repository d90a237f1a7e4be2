//! Replacing policies while the service runs.

use std::time::Duration;

use headgate_guard::{Allowance, Guard, Policy, PolicyError, Routes};

use crate::support::{Server, by_address, by_clock, daily, daily_class, guard, public};

#[tokio::test]
async fn a_replaced_limit_applies_at_once_and_keeps_counters() {
    let guard = guard(3);
    let server = Server::behind(&guard).await;
    assert_eq!([server.status("/").await, server.status("/").await], [200, 200]);

    guard.replace(daily(5)).unwrap();
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(server.status("/").await);
    }
    assert_eq!(statuses, [200, 200, 200, 429], "five, of which two were taken before");

    guard.replace(daily(0)).unwrap();
    assert_eq!(server.status("/").await, 429);
    assert_eq!(guard.policy(), daily(0).into());
}

#[tokio::test]
async fn a_stricter_limit_counts_earlier_requests() {
    let (clock, backend) = by_clock();
    let builder = Guard::builder(public(100), Routes::all("public")).backend(backend);
    let guard = builder.build().unwrap();
    let server = Server::behind(&guard).await;
    for _ in 0..50 {
        assert_eq!(server.status("/").await, 200);
    }
    guard.replace(public(10)).unwrap();
    assert_eq!(server.status("/").await, 429);
    clock.advance(Duration::from_secs(301));
    assert_eq!(server.status("/").await, 200);
}

#[tokio::test]
async fn disabling_a_policy_keeps_always_on_classes_limited() {
    let policy =
        || Policy::new([daily_class("public", 1), daily_class("bootstrap", 1).always_on()]);
    let routes = Routes::all("public").prefix("/v1/bootstrap", "bootstrap");
    let guard = Guard::builder(policy().unwrap().enabled(false), routes).build().unwrap();
    let server = Server::behind(&guard).await;
    for expected in [[200, 200], [200, 429]] {
        let got = [server.status("/").await, server.status("/v1/bootstrap/nodes").await];
        assert_eq!(got, expected);
    }
    guard.replace(policy().unwrap()).unwrap();
    assert_eq!([server.status("/").await, server.status("/").await], [200, 429]);
}

#[tokio::test]
async fn a_policy_without_a_current_class_is_rejected() {
    let guard = guard(1);
    let other = Policy::new([by_address("other", 9)]).unwrap();
    assert_eq!(guard.replace(other), Err(PolicyError::UnknownClass("public".into())));
    assert_eq!(guard.policy().classes(), daily(1).classes());
    let more = Policy::new([by_address("public", 2), by_address("other", 9)]).unwrap();
    assert_eq!(guard.replace(more), Ok(()));
    let allowed = guard.check("other", "192.0.2.1".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(allowed.limit, Allowance::per_minute(9).unwrap().limit().unwrap().capacity());
}
