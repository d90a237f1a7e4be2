//! Resets of usage.

use headgate_quota::{EventKind, Page, usecase::ResetError};
use headgate_ratelimit::{AuditFilter, AuditLog};

use super::setup::{Replica, draft};
use crate::support::{Home, at, on_both};

on_both!(
    a_reset_clears_usage_and_is_recorded,
    a_reset_of_unused_quota_is_recorded,
    a_reset_needs_a_reason,
    a_request_id_is_not_charged_again_after_a_reset,
);

async fn a_reset_clears_usage_and_is_recorded(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 2).await;
    assert!(!other.increment(&policy.id, 1).await.allowed);

    let reason = " プラン変更に伴うリセット ";
    let done = replica.resets.reset(&policy.id, reason, replica.author()).await.unwrap();

    assert_eq!((done.quota_id, done.before), (policy.id.clone(), 2));
    assert_eq!((done.reset_at, &*done.reset_by), (at(0), "ada"));
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 0);
    assert_eq!(replica.increment(&policy.id, 2).await.usage.used, 2);
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (2, Some(2)));

    let filter = AuditFilter { action: Some("quota.reset".to_owned()), ..AuditFilter::default() };
    let [entry] =
        replica.database.entries(&filter, Page::DEFAULT).await.unwrap().items.try_into().unwrap();
    assert_eq!((entry.target, entry.author), (policy.id.to_string(), replica.author()));
    assert_eq!(entry.reason.as_deref(), Some("プラン変更に伴うリセット"));
    let state = |used: u64| {
        let name = &policy.spec.name;
        Some(format!(r#"{{"name":"{name}","period":"2026-02-23","used":{used}}}"#))
    };
    assert_eq!((entry.before, entry.after), (state(2), state(0)));
    // Events of this period are not recorded again.
    let recorded: Vec<_> =
        replica.events().await.into_iter().map(|logged| logged.event.kind).collect();
    assert_eq!(recorded, [EventKind::Exceeded]);
}

async fn a_reset_of_unused_quota_is_recorded(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    let done = replica.resets.reset(&policy.id, "to be sure", replica.author()).await.unwrap();
    assert_eq!(done.before, 0);
    let filter = AuditFilter { target: Some(policy.id.to_string()), ..AuditFilter::default() };
    assert_eq!(replica.database.entries(&filter, Page::DEFAULT).await.unwrap().total, 2);
}

async fn a_reset_needs_a_reason(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 1).await;
    let long = "x".repeat(1_001);
    for (reason, expected) in [
        ("", "reason is required"),
        (" \t\n", "reason is required"),
        (&*long, "reason must have at most 1000 characters"),
    ] {
        let error = replica.resets.reset(&policy.id, reason, replica.author()).await.unwrap_err();
        let ResetError::Invalid(errors) = error else { panic!("{error}") };
        assert_eq!((errors[0].field, &*errors[0].message), ("reason", expected));
    }
    assert_eq!(replica.kept(&policy).await, 1);
}

async fn a_request_id_is_not_charged_again_after_a_reset(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.try_increment(&policy.id, 4, "req_1").await.unwrap();
    replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
    let again = replica.try_increment(&policy.id, 4, "req_1").await.unwrap();
    assert!(again.replayed && again.usage.used == 4);
    assert_eq!(replica.kept(&policy).await, 0);
}
