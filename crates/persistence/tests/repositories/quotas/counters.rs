//! Counters may be lost, wrong or unavailable: the ledger decides.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_quota::usecase::Drift;

use super::setup::{Replica, draft};
use crate::support::{Home, on_both};

on_both!(
    a_flushed_counter_is_restored,
    flushing_a_counter_under_load_does_not_exceed_the_limit,
    a_counter_that_shows_too_much_denies_nothing,
    a_counter_with_uncharged_units_does_not_deny_checks,
    increments_work_without_a_counter,
    usage_is_correct_without_a_counter,
    replicas_with_local_counters_agree,
    reconciliation_reports_and_repairs_drift,
    denials_are_cached_for_a_second,
);

async fn a_flushed_counter_is_restored(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 6).await;
    replica.show(&policy, 0).await;
    assert_eq!(replica.increment(&policy.id, 1).await.usage.used, 7);
    assert_eq!(replica.shown(&policy).await, Some(7));

    // A newly started process sees it, too.
    replica.show(&policy, 0).await;
    let other = replica.beside(home);
    assert_eq!(other.increment(&policy.id, 1).await.usage.used, 8);
    assert_eq!(replica.shown(&policy).await, Some(8));
    replica.show(&policy, 0).await;
    assert!(!replica.increment(&policy.id, 9).await.allowed);
    assert_eq!(replica.shown(&policy).await, Some(8));
}

async fn flushing_a_counter_under_load_does_not_exceed_the_limit(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(60)).await;
    let sent = (0..96_u64).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        let policy = &policy;
        async move {
            if number % 8 == 0 {
                replica.show(policy, 0).await;
            }
            replica.increment(&policy.id, 1).await
        }
    });
    let admitted = join_all(sent).await.iter().filter(|answer| answer.allowed).count();
    assert_eq!((admitted, replica.kept(&policy).await), (60, 60));
}

async fn a_counter_with_uncharged_units_does_not_deny_checks(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 2).await;
    // A process without recent commits relies on counters most.
    let other = replica.beside(home);
    for shown in [10, 8] {
        replica.show(&policy, shown).await;
        let checked = other.usage.check(&policy.id, Some(3)).await.unwrap();
        assert_eq!((checked.allowed, checked.usage.used), (true, 2));
        assert_eq!(replica.shown(&policy).await, Some(2));
    }
    // Usage is what was charged, regardless of counters.
    for shown in [10, 5, 1] {
        replica.show(&policy, shown).await;
        let usage = other.usage.usage(&policy.id).await.unwrap();
        assert_eq!((usage.used, usage.exceeded), (2, false));
    }
}

async fn a_counter_that_shows_too_much_denies_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 1).await;
    replica.show(&policy, 10).await;
    let done = replica.increment(&policy.id, 1).await;
    assert!(done.allowed);
    // The commit detected it and compared it with the ledger.
    assert_eq!((done.usage.used, replica.shown(&policy).await), (2, Some(2)));
}

async fn increments_work_without_a_counter(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(3)).await;
    replica.increment(&policy.id, 1).await;
    replica.counter.fail(true);
    assert_eq!(replica.increment(&policy.id, 1).await.usage.used, 2);
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 2);
    assert!(replica.usage.check(&policy.id, Some(1)).await.unwrap().allowed);
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert!(!replica.increment(&policy.id, 1).await.allowed);
    replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
    assert!(replica.increment(&policy.id, 1).await.allowed);
    replica.counter.fail(false);
    // It missed all that, and is corrected by the next increment.
    assert_eq!(replica.increment(&policy.id, 1).await.usage.used, 2);
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert!(!replica.increment(&policy.id, 1).await.allowed);
    assert_eq!(replica.kept(&policy).await, 3);
}

async fn usage_is_correct_without_a_counter(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 0);
    replica.increment(&policy.id, 6).await;
    // Lost in whole and in part; in this process and in a newly started one.
    let other = replica.beside(home);
    for replica in [&replica, &other] {
        replica.quotas.catalog().refresh().await.unwrap();
        replica.show(&policy, 0).await;
        assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 6);
        assert_eq!(replica.usage.check(&policy.id, None).await.unwrap().usage.used, 6);
        assert_eq!(replica.shown(&policy).await, Some(6));
    }
    replica.increment(&policy.id, 1).await;
    replica.show(&policy, 2).await;
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 7);
    assert_eq!(replica.usage.check(&policy.id, None).await.unwrap().usage.used, 7);
}

async fn replicas_with_local_counters_agree(home: &Home) {
    let first = Replica::start(home).await;
    let policy = first.create(draft(60)).await;
    let replicas = [first.apart(home), first.apart(home)];
    let sent = (0..50).map(|number| replicas[number % 2].increment(&policy.id, 1));
    join_all(sent).await;
    for replica in &replicas {
        assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 50);
    }
    let sent = (0..50).map(|number| replicas[number % 2].increment(&policy.id, 1));
    let admitted = join_all(sent).await.iter().filter(|answer| answer.allowed).count();
    assert_eq!((admitted, first.kept(&policy).await), (10, 60));
    for replica in &replicas {
        assert!(!replica.usage.check(&policy.id, None).await.unwrap().allowed);
    }
}

async fn reconciliation_reports_and_repairs_drift(home: &Home) {
    let replica = Replica::start(home).await;
    let mut policies = Vec::new();
    for subject in ["t1", "t2", "t3", "t4"] {
        let draft = headgate_quota::Draft { subject_id: subject.to_owned().into(), ..draft(100) };
        let policy = replica.create(draft).await;
        replica.increment(&policy.id, 10).await;
        policies.push(policy);
    }
    replica.show(&policies[0], 0).await;
    replica.show(&policies[1], 4).await;
    replica.show(&policies[2], 15).await;

    let minute = Duration::from_secs(60);
    let drift = replica.house.reconcile(minute).await.unwrap();

    assert_eq!(drift, Drift { compared: 4, missing: 1, behind: 16, ahead: 5 });
    for policy in &policies {
        assert_eq!(replica.shown(policy).await, Some(10));
    }
    let again = replica.house.reconcile(minute).await.unwrap();
    assert_eq!(again, Drift { compared: 4, ..Drift::default() });
    // Periods without recent changes are skipped.
    replica.pass(Duration::from_secs(61));
    assert_eq!(replica.house.reconcile(minute).await.unwrap(), Drift::default());
    replica.counter.fail(true);
    let away = replica.house.reconcile(minute * 10).await.unwrap();
    assert_eq!(away, Drift::default());
}

async fn denials_are_cached_for_a_second(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 2).await;
    assert!(!replica.increment(&policy.id, 1).await.allowed);
    // Reset without this process noticing, and without removing the counter.
    other.counter.fail(true);
    other.resets.reset(&policy.id, "why not", other.author()).await.unwrap();
    other.counter.fail(false);
    let believed = replica.increment(&policy.id, 1).await;
    assert!(!believed.allowed && believed.usage.used == 2);
    // With a request id, the ledger always decides.
    assert!(replica.try_increment(&policy.id, 1, "req_1").await.unwrap().allowed);
    replica.show(&policy, 2).await;
    replica.pass(Duration::from_secs(1));
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert_eq!(replica.kept(&policy).await, 2);
}
