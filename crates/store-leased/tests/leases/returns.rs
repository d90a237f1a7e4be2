//! When units go back that are not used.

use std::time::Duration;

use headgate::Limit;

use crate::support::{Instance, Remote, check, second};

/// An instance that holds units of a subject from now on, for a whole hold; returns their number.
async fn hold(instance: &Instance, name: &str) -> u64 {
    let limit = Limit::fixed_window(1_000, second() * 3_600).unwrap();
    let before = instance.held();
    for _ in 0..20 {
        assert!(instance.acquire(&check(name, &limit)).await.allowed);
    }
    let held = instance.held() - before;
    assert!(held > 0, "{:?}", instance.stats());
    held
}

#[tokio::test]
async fn units_are_kept_until_an_eighth_of_their_time_is_left() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let held = hold(&instance, "u").await;
    for wait in [0, 174_999] {
        clock.advance(Duration::from_micros(wait));
        instance.store().give_back_due().await;
        assert_eq!((instance.held(), instance.stats().given_back), (held, 0), "{wait}");
    }
    clock.advance(Duration::from_micros(1));
    instance.store().give_back_due().await;
    assert_eq!((instance.held(), instance.stats().given_back), (0, held));
}

#[tokio::test(start_paused = true)]
async fn the_task_that_gives_back_looks_again_and_again() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let mut given_back = 0;
    for name in ["a", "b"] {
        given_back += hold(&instance, name).await;
        clock.advance(Duration::from_millis(195));
        let task = instance.store().give_back_unused();
        assert!(tokio::time::timeout(second(), task).await.is_err(), "it does not end");
        assert_eq!(instance.stats().given_back, given_back);
        clock.advance(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn units_that_did_not_go_back_in_time_count_as_lost_ten_seconds_later_too() {
    let (remote, clock) = Remote::new();
    let instance = Instance::new(&remote, &clock);
    let lost = hold(&instance, "a").await;
    clock.advance(10 * second());
    let held = hold(&instance, "b").await;
    instance.store().give_back_due().await;
    assert_eq!((instance.stats().lost, instance.held()), (lost, held));
}
