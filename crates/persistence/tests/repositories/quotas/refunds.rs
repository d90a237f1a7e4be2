//! Refunds of increments.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_quota::usecase::{IncrementError, RefundError};

use super::setup::{Replica, draft};
use crate::support::{Home, on_both};

on_both!(
    an_increment_is_refunded_once,
    a_refunded_request_id_is_not_charged_again,
    a_charge_before_a_reset_gives_nothing_back,
    unknown_and_past_request_ids_are_refused,
    a_refund_ends_cached_denials,
);

async fn an_increment_is_refunded_once(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    replica.try_increment(&policy.id, 4, "a").await.unwrap();
    replica.try_increment(&policy.id, 5, "b").await.unwrap();
    let sent = (0..8).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        replica.refunds.refund(&policy.id, "a")
    });
    let done: Vec<_> = join_all(sent).await.into_iter().map(Result::unwrap).collect();
    assert!(done.iter().all(|done| done.refunded == 4 && done.usage.used == 5));
    assert_eq!(done.iter().filter(|done| !done.replayed).count(), 1);
    assert_eq!(replica.kept(&policy).await, 5);
}

async fn a_refunded_request_id_is_not_charged_again(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.try_increment(&policy.id, 4, "a").await.unwrap();
    replica.refunds.refund(&policy.id, "a").await.unwrap();
    let again = replica.try_increment(&policy.id, 4, "a").await;
    assert!(matches!(again, Err(IncrementError::Refunded(_))), "{again:?}");
    assert_eq!(replica.kept(&policy).await, 0);
}

async fn a_charge_before_a_reset_gives_nothing_back(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.try_increment(&policy.id, 4, "a").await.unwrap();
    replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
    replica.try_increment(&policy.id, 7, "b").await.unwrap();
    assert_eq!(replica.refunds.refund(&policy.id, "a").await.unwrap().refunded, 0);
    assert_eq!(replica.kept(&policy).await, 7);
    assert_eq!(replica.refunds.refund(&policy.id, "b").await.unwrap().refunded, 7);
    assert_eq!(replica.kept(&policy).await, 0);
}

async fn unknown_and_past_request_ids_are_refused(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let unused = replica.refunds.refund(&policy.id, "a").await;
    assert!(matches!(unused, Err(RefundError::Unknown(_))), "{unused:?}");
    replica.try_increment(&policy.id, 4, "a").await.unwrap();
    let unknown = replica.refunds.refund(&policy.id, "b").await;
    assert!(matches!(unknown, Err(RefundError::Unknown(_))), "{unknown:?}");
    let invalid = replica.refunds.refund(&policy.id, "").await;
    assert!(matches!(invalid, Err(RefundError::Invalid(_))), "{invalid:?}");
    replica.pass(Duration::from_hours(24));
    let past = replica.refunds.refund(&policy.id, "a").await;
    let Err(RefundError::PeriodOver { period_name, .. }) = past else { panic!("{past:?}") };
    assert_eq!(period_name, "2026-02-23");
}

async fn a_refund_ends_cached_denials(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    replica.try_increment(&policy.id, 10, "a").await.unwrap();
    for replica in [&replica, &other] {
        assert!(!replica.increment(&policy.id, 1).await.allowed);
    }
    replica.refunds.refund(&policy.id, "a").await.unwrap();
    assert!(other.increment(&policy.id, 1).await.allowed);
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert_eq!(replica.shown(&policy).await, Some(2));
}
