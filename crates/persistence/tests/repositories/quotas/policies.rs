//! Policies.

use std::{sync::Arc, time::Duration};

use headgate_quota::{
    Draft, Input, Page, PolicyFilter, QuotaPolicy, QuotaPolicyRepository, RepositoryError,
    SubjectType, usecase::ManageError,
};
use headgate_ratelimit::{AuditFilter, AuditLog};
use headgate_testkit::require;
use tokio::sync::Notify;

use super::setup::{Replica, draft};
use crate::support::{Home, TIMEOUT, at, on_both, run};

on_both!(
    policies_round_trip,
    lists_are_filtered_and_paged_newest_first,
    duplicate_policies_are_rejected,
    updates_are_full_or_partial,
    concurrent_changes_are_both_applied,
    deleting_a_policy_keeps_its_usage,
    changes_are_recorded_in_the_audit_log,
    policies_of_other_replicas_are_found_at_once,
    invalid_policies_are_rejected_with_all_errors,
    an_invalid_policy_row_is_reported_with_its_id,
    a_policy_with_an_unknown_time_zone_affects_no_other,
    a_catalog_follows_every_change,
    a_deletion_does_not_load_other_policies,
);

async fn policies_round_trip(home: &Home) {
    let replica = Replica::start(home).await;
    let full = Draft {
        time_zone: "Asia/Tokyo".to_owned().into(),
        enabled: false.into(),
        alert_threshold_percent: 0.into(),
        limit: (1 << 53).into(),
        subject_type: "api_key".to_owned().into(),
        period: "monthly".to_owned().into(),
        subject_id: "é".repeat(255).into(),
        ..draft(1)
    };
    for draft in [full, draft(1)] {
        let policy = replica.create(draft.clone()).await;
        assert_eq!(policy.spec, draft.validate(None).unwrap());
        assert_eq!((policy.created_at, policy.updated_at), (at(0), at(0)));
        assert_eq!(replica.policies.get(&policy.id).await.unwrap(), policy);
        assert!(replica.kept.load().await.unwrap().1.contains(&policy));
    }
}

async fn lists_are_filtered_and_paged_newest_first(home: &Home) {
    let replica = Replica::start(home).await;
    let mut expected = Vec::new();
    for number in 0..7_usize {
        let kind = SubjectType::ALL[number % 3].name().to_owned();
        let subject_id = format!("s{}", number % 2);
        let period = if number < 4 { "daily" } else { "monthly" }.to_owned();
        let draft = Draft {
            subject_type: kind.into(),
            subject_id: subject_id.into(),
            period: period.into(),
            enabled: (number != 3).into(),
            ..draft(10)
        };
        expected.push(replica.create(draft).await);
        replica.pass(Duration::from_millis(1));
    }
    expected.reverse();
    let list = async |filter: &PolicyFilter, page, size| {
        replica.policies.list(filter, Page::new(page, size).unwrap()).await.unwrap()
    };
    let all = PolicyFilter::default();
    let first = list(&all, 1, 4).await;
    assert_eq!((&*first.items, first.total, first.has_next()), (&expected[..4], 7, true));
    assert_eq!(list(&all, 2, 4).await.items, expected[4..]);
    assert_eq!(list(&all, 9, 4).await.items, []);

    let tenants = PolicyFilter { subject_type: Some(SubjectType::Tenant), ..all.clone() };
    assert_eq!(list(&tenants, 1, 20).await.total, 3);
    let enabled = PolicyFilter { enabled_only: true, ..tenants };
    assert_eq!(list(&enabled, 1, 20).await.total, 2);
    let one = PolicyFilter { subject_id: Some("s1".to_owned()), ..all };
    assert_eq!(list(&one, 1, 20).await.total, 3);
}

async fn duplicate_policies_are_rejected(home: &Home) {
    let replica = Replica::start(home).await;
    let first = replica.create(draft(10)).await;
    // A different period is a different quota.
    let monthly = Draft { period: "monthly".to_owned().into(), ..draft(10) };
    let monthly = replica.create(monthly).await;
    let again = replica.policies.create(draft(20), &replica.author()).await.unwrap_err();
    let turned = replica.policies.replace(&monthly.id, &draft(20), &replica.author()).await;
    for error in [again, turned.unwrap_err()] {
        let ManageError::Repository(error @ RepositoryError::Exists { .. }) = error else {
            panic!("{error}");
        };
        assert_eq!(error.to_string(), "a daily quota policy for tenant tenant-abc already exists");
    }
    assert_eq!(replica.policies.get(&monthly.id).await.unwrap(), monthly);
    // It is no duplicate of itself.
    replica.policies.replace(&first.id, &draft(20), &replica.author()).await.unwrap();
}

async fn updates_are_full_or_partial(home: &Home) {
    let replica = Replica::start(home).await;
    let full = Draft { alert_threshold_percent: 80.into(), ..draft(10) };
    let policy = replica.create(full).await;
    replica.pass(Duration::from_secs(1));

    let next = Draft { name: "premium".to_owned().into(), ..draft(20) };
    let replaced = replica.policies.replace(&policy.id, &next, &replica.author()).await.unwrap();
    assert_eq!((&*replaced.spec.name, replaced.spec.limit), ("premium", 20));
    assert_eq!(replaced.spec.alert_threshold_percent, Some(80));
    assert_eq!((replaced.created_at, replaced.updated_at), (at(0), at(1_000)));

    let only = Draft { limit: 30.into(), ..Draft::default() };
    let amended = replica.policies.amend(&policy.id, &only, &replica.author()).await.unwrap();
    assert_eq!((&*amended.spec.name, amended.spec.limit), ("premium", 30));
    assert_eq!(replica.quotas.catalog().load(&policy.id).unwrap().policy(), &amended);

    let missing = replica.policies.replace(&policy.id, &only, &replica.author()).await;
    assert!(matches!(missing, Err(ManageError::Invalid(errors)) if errors.len() == 4));
    let unknown = "quota_unknown".parse().unwrap();
    let error = replica.policies.amend(&unknown, &only, &replica.author()).await.unwrap_err();
    assert_eq!(error.to_string(), "quota policy not found: quota_unknown");
}

async fn concurrent_changes_are_both_applied(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let other = replica.beside(home);
    for limit in 11..20 {
        let by = replica.author();
        let limited = Draft { limit: limit.into(), ..Draft::default() };
        let switched = Draft { enabled: (limit % 2 == 0).into(), ..Draft::default() };
        let (one, two) = tokio::join!(
            replica.policies.amend(&policy.id, &limited, &by),
            other.policies.amend(&policy.id, &switched, &by),
        );
        one.unwrap();
        two.unwrap();
        let spec = replica.policies.get(&policy.id).await.unwrap().spec;
        assert_eq!((spec.limit, spec.enabled), (limit.cast_unsigned(), limit % 2 == 0));
    }
}

async fn deleting_a_policy_keeps_its_usage(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let other = replica.beside(home);
    other.quotas.catalog().refresh().await.unwrap();
    replica.increment(&policy.id, 3).await;

    let deleted = replica.policies.delete(&policy.id, &replica.author()).await.unwrap();

    assert_eq!(deleted, policy);
    let not_found = |error: &dyn std::fmt::Display| {
        assert_eq!(error.to_string(), format!("quota policy not found: {}", policy.id));
    };
    let id = &policy.id;
    not_found(&replica.policies.get(id).await.unwrap_err());
    not_found(&replica.policies.delete(id, &replica.author()).await.unwrap_err());
    not_found(&replica.increments.increment(id, 1, None).await.unwrap_err());
    not_found(&replica.usage.usage(id).await.unwrap_err());
    not_found(&replica.usage.check(id, None).await.unwrap_err());
    not_found(&replica.usage.history(id, Page::DEFAULT).await.unwrap_err());
    not_found(&replica.resets.reset(id, "why not", replica.author()).await.unwrap_err());
    // On a replica with a stale catalog, the ledger decides.
    not_found(&other.increments.increment(id, 1, None).await.unwrap_err());
    not_found(&other.resets.reset(id, "why not", replica.author()).await.unwrap_err());
    assert_eq!(replica.kept(&policy).await, 3);

    // The next policy of the subject starts without usage.
    let next = replica.create(draft(10)).await;
    assert_eq!(replica.increment(&next.id, 1).await.usage.used, 1);
}

async fn changes_are_recorded_in_the_audit_log(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.policies.replace(&policy.id, &draft(20), &replica.author()).await.unwrap();
    replica.policies.delete(&policy.id, &replica.author()).await.unwrap();

    let filter = AuditFilter { target: Some(policy.id.to_string()), ..AuditFilter::default() };
    let entries = replica.database.entries(&filter, Page::DEFAULT).await.unwrap().items;
    let actions: Vec<&str> = entries.iter().map(|entry| &*entry.action).collect();
    assert_eq!(actions, ["quota.delete", "quota.update", "quota.create"]);
    let created: serde_json::Value =
        serde_json::from_str(entries[2].after.as_deref().unwrap()).unwrap();
    let expected = serde_json::json!({
        "name": "スタンダードプラン", "subject_type": "tenant", "subject_id": "tenant-abc",
        "limit": 10, "period": "daily", "time_zone": null, "enabled": true,
        "alert_threshold_percent": null,
    });
    assert_eq!(created, expected);
    assert_eq!(entries[1].before, entries[2].after);
    assert_eq!((&entries[0].before, &entries[0].after), (&entries[1].after, &None));
}

async fn policies_of_other_replicas_are_found_at_once(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    other.quotas.catalog().refresh().await.unwrap();
    let policy = replica.create(draft(10)).await;
    assert_eq!(other.increment(&policy.id, 1).await.usage.used, 1);

    // An unknown id is looked up once a second at most.
    let id = "quota_later".parse().unwrap();
    let unknown = other.usage.usage(&id).await.unwrap_err();
    assert!(matches!(unknown, RepositoryError::NotFound(_)), "{unknown}");
    let mut console = home.console().await;
    console.run("UPDATE quota_policies SET id = 'quota_later'").await;
    assert!(other.usage.usage(&id).await.is_err());
    other.pass(Duration::from_secs(1));
    console.run("UPDATE revisions SET revision = revision + 1").await;
    console.run("UPDATE quota_policies SET revision = revision + 1").await;
    other.usage.usage(&id).await.unwrap();
}

async fn invalid_policies_are_rejected_with_all_errors(home: &Home) {
    let replica = Replica::start(home).await;
    let wrong = Draft {
        subject_type: "group".to_owned().into(),
        name: Input::Missing,
        alert_threshold_percent: 101.into(),
        ..draft(0)
    };
    let error = replica.policies.create(wrong, &replica.author()).await.unwrap_err();
    let ManageError::Invalid(errors) = error else { panic!("{error}") };
    let fields: Vec<&str> = errors.iter().map(|error| error.field).collect();
    assert_eq!(fields, ["name", "subject_type", "limit", "alert_threshold_percent"]);
    assert!(replica.kept.load().await.unwrap().1.is_empty());
}

async fn an_invalid_policy_row_is_reported_with_its_id(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let mut console = home.console().await;
    console.run("UPDATE quota_policies SET name = ''").await;
    let error = replica.kept.load().await.unwrap_err();
    assert!(matches!(error, RepositoryError::Corrupt(_)), "{error}");
    assert!(error.to_string().contains(policy.id.as_str()), "{error}");
}

/// A zone that an earlier version took from its machine, or that this version does not know.
async fn a_policy_with_an_unknown_time_zone_affects_no_other(home: &Home) {
    const CHANGE: &str = "
        UPDATE revisions SET revision = revision + 1 WHERE name = 'quota_policies';
        UPDATE quota_policies SET time_zone = 'localtime', revision = (
            SELECT revision FROM revisions WHERE name = 'quota_policies')";
    let replica = Replica::start(home).await;
    let broken = replica.create(draft(10)).await;
    home.console().await.run(CHANGE).await;
    let fine = replica.create(Draft { subject_id: "fine".to_owned().into(), ..draft(10) }).await;
    // A server that knows a valid version uses it; one that starts knows none.
    let new = replica.beside(home);
    new.quotas.catalog().refresh().await.unwrap();
    replica.increment(&broken.id, 1).await;
    let error = new.increments.increment(&broken.id, 1, None).await.unwrap_err();
    assert!(error.to_string().contains("unknown time zone \"localtime\""), "{error}");
    for replica in [&replica, &new] {
        replica.increment(&fine.id, 1).await;
        let error = replica.quotas.catalog().freshness().error.unwrap().to_string();
        assert!(error.contains(broken.id.as_str()), "{error}");
        assert_eq!(replica.quotas.catalog().revision(), replica.kept.revision().await.unwrap());
        assert!(!replica.quotas.catalog().refresh().await.unwrap());
    }
    // It can be shown and repaired.
    let listed = new.policies.list(&PolicyFilter::default(), Page::DEFAULT).await.unwrap();
    assert_eq!(listed.total, 2);
    let repair = Draft { time_zone: "Asia/Tokyo".to_owned().into(), ..Draft::default() };
    new.policies.amend(&broken.id, &repair, &new.author()).await.unwrap();
    assert!(new.quotas.catalog().freshness().error.is_none());
    new.increment(&broken.id, 1).await;
}

async fn a_catalog_follows_every_change(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let named = |number: usize| Draft { subject_id: format!("t{number}").into(), ..draft(10) };
    let mut policies = Vec::new();
    for number in 0..3 {
        policies.push(replica.create(named(number)).await);
    }
    let catalog = other.quotas.catalog();
    assert!(catalog.refresh().await.unwrap() && !catalog.refresh().await.unwrap());
    let in_force = async |policies: &[QuotaPolicy]| {
        assert!(catalog.refresh().await.unwrap());
        assert_eq!(catalog.revision(), replica.kept.revision().await.unwrap());
        assert_eq!(catalog.len(), policies.len());
        let same = |policy: &QuotaPolicy| catalog.load(&policy.id).unwrap().policy() == policy;
        assert!(policies.iter().all(same));
        assert!(!catalog.refresh().await.unwrap());
    };
    policies.push(replica.create(named(3)).await);
    let kept = catalog.load(&policies[0].id).unwrap();
    in_force(&policies).await;
    assert!(Arc::ptr_eq(&kept, &catalog.load(&policies[0].id).unwrap()));

    let change = Draft { limit: 5.into(), ..Draft::default() };
    let by = replica.author();
    policies[1] = replica.policies.amend(&policies[1].id, &change, &by).await.unwrap();
    in_force(&policies).await;
    // One is deleted and another created, so that the number stays the same.
    replica.policies.delete(&policies[0].id, &by).await.unwrap();
    policies[0] = replica.create(named(0)).await;
    in_force(&policies).await;
    assert!(catalog.load(&kept.policy().id).is_none());
    replica.policies.delete(&policies.pop().unwrap().id, &by).await.unwrap();
    in_force(&policies).await;
}

/// An invalid row would fail a full load.
async fn a_deletion_does_not_load_other_policies(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let named = |number: usize| Draft { subject_id: format!("t{number}").into(), ..draft(10) };
    let (one, two) = (replica.create(named(1)).await, replica.create(named(2)).await);
    let catalog = other.quotas.catalog();
    catalog.refresh().await.unwrap();
    let mut console = home.console().await;
    let damage = format!("UPDATE quota_policies SET name = '' WHERE id = '{}'", two.id);
    console.run(&damage).await;
    replica.policies.delete(&one.id, &replica.author()).await.unwrap();
    assert!(catalog.refresh().await.unwrap());
    assert_eq!((catalog.len(), catalog.load(&one.id).is_none()), (1, true));
    assert_eq!(catalog.load(&two.id).unwrap().policy(), &two);
    // The deletion is not recorded any more: all are loaded.
    console.run("DELETE FROM quota_policy_deletions").await;
    replica.create(named(3)).await;
    console.run(&format!("DELETE FROM quota_policies WHERE id = '{}'", two.id)).await;
    assert!(catalog.refresh().await.unwrap());
    assert_eq!((catalog.len(), catalog.load(&two.id).is_none()), (1, true));
}

#[test]
fn changes_notify_other_replicas() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let other = replica.beside(&home);
        let changed = Notify::new();
        let hearing = async {
            changed.notified().await;
            replica.create(draft(10)).await;
            tokio::time::timeout(TIMEOUT, changed.notified()).await.unwrap();
        };
        tokio::select! {
            error = other.kept.listen(&changed) => panic!("{error}"),
            () = hearing => {}
        }
    });
}
