//! Increments: nothing is lost, charged twice, or charged beyond the limit.

use futures_util::future::join_all;
use headgate_quota::{Draft, usecase::IncrementError};

use super::setup::{Replica, draft};
use crate::support::{Home, on_both};

on_both!(
    increments_are_charged_until_nothing_is_left,
    a_denied_amount_charges_nothing,
    the_same_request_id_is_charged_once,
    the_same_request_id_sent_sixteen_times_at_once_is_charged_once,
    another_amount_under_the_same_request_id_is_a_conflict,
    a_replay_succeeds_when_nothing_is_left,
    a_replay_succeeds_after_the_policy_changed,
    a_denied_request_id_can_be_retried,
    two_replicas_never_exceed_the_limit,
    many_policies_share_a_transaction,
    a_disabled_policy_admits_and_counts_nothing,
    a_changed_limit_applies_to_existing_usage,
    amounts_and_request_ids_have_bounds,
    a_check_consumes_nothing,
);

async fn increments_are_charged_until_nothing_is_left(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(4)).await;
    for used in 1..=4 {
        let done = replica.increment(&policy.id, 1).await;
        assert!(done.allowed && !done.replayed);
        assert_eq!((done.usage.used, done.usage.remaining), (used, 4 - used));
        assert_eq!(done.usage.exceeded, used == 4);
        assert_eq!(done.usage.usage_percent.to_string(), (used * 25).to_string());
    }
    for _ in 0..3 {
        let refused = replica.increment(&policy.id, 1).await;
        assert!(!refused.allowed && refused.usage.exceeded);
        assert_eq!((refused.usage.used, refused.usage.remaining), (4, 0));
    }
    assert_eq!(replica.kept(&policy).await, 4);
    assert_eq!(replica.shown(&policy).await, Some(4));
    let usage = replica.usage.usage(&policy.id).await.unwrap();
    assert_eq!((usage.used, usage.limit, &*usage.span.name), (4, 4, "2026-02-23"));
    assert_eq!((usage.quota_id, usage.subject), (policy.id, policy.spec.subject));
}

async fn a_denied_amount_charges_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    assert!(replica.increment(&policy.id, 7).await.allowed);
    let refused = replica.increment(&policy.id, 4).await;
    assert!(!refused.allowed && !refused.usage.exceeded);
    assert_eq!((refused.usage.used, refused.usage.remaining), (7, 3));
    assert!(replica.increment(&policy.id, 3).await.allowed);
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (10, Some(10)));
}

async fn the_same_request_id_is_charged_once(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let first = replica.try_increment(&policy.id, 2, "req_1").await.unwrap();
    replica.increment(&policy.id, 1).await;
    // Also in another process.
    for replica in [&replica, &replica.beside(home)] {
        let again = replica.try_increment(&policy.id, 2, "req_1").await.unwrap();
        assert!(again.allowed && again.replayed);
        assert_eq!((again.usage.used, again.usage.remaining), (2, 8));
        assert_eq!(again.usage, first.usage);
    }
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (3, Some(3)));
}

async fn the_same_request_id_sent_sixteen_times_at_once_is_charged_once(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    let sent = (0..16).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        replica.try_increment(&policy.id, 3, "req_1")
    });
    let answers: Vec<_> = join_all(sent).await.into_iter().map(Result::unwrap).collect();
    assert!(answers.iter().all(|answer| answer.allowed && answer.usage.used == 3));
    assert_eq!(answers.iter().filter(|answer| !answer.replayed).count(), 1);
    assert_eq!(replica.kept(&policy).await, 3);
}

async fn another_amount_under_the_same_request_id_is_a_conflict(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let both = [
        replica.try_increment(&policy.id, 2, "req_1"),
        replica.try_increment(&policy.id, 3, "req_1"),
    ];
    let [first, second] = join_all(both).await.try_into().unwrap();
    assert!(first.unwrap().allowed);
    let error = second.unwrap_err();
    assert!(matches!(&error, IncrementError::Conflict(id) if id == "req_1"), "{error}");
    let error = replica.try_increment(&policy.id, 1, "req_1").await.unwrap_err();
    assert!(matches!(error, IncrementError::Conflict(_)), "{error}");
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (2, Some(2)));
}

async fn a_replay_succeeds_when_nothing_is_left(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    replica.try_increment(&policy.id, 1, "req_1").await.unwrap();
    replica.increment(&policy.id, 1).await;
    assert!(!replica.increment(&policy.id, 1).await.allowed);
    let again = replica.try_increment(&policy.id, 1, "req_1").await.unwrap();
    assert!(again.allowed && again.replayed);
    assert_eq!(again.usage.used, 1);
    assert!(!replica.try_increment(&policy.id, 1, "req_2").await.unwrap().allowed);
}

async fn a_replay_succeeds_after_the_policy_changed(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let first = replica.try_increment(&policy.id, 8, "req_1").await.unwrap();
    replica.policies.replace(&policy.id, &draft(5), &replica.author()).await.unwrap();
    // Beyond the new limit, which would be invalid for another request.
    let error = replica.try_increment(&policy.id, 8, "req_2").await.unwrap_err();
    assert!(matches!(&error, IncrementError::Invalid(_)), "{error}");
    let disable = Draft { enabled: false.into(), ..Draft::default() };
    for change in [None, Some(disable)] {
        if let Some(change) = change {
            replica.policies.amend(&policy.id, &change, &replica.author()).await.unwrap();
        }
        let again = replica.try_increment(&policy.id, 8, "req_1").await.unwrap();
        assert!(again.allowed && again.replayed);
        assert_eq!(again.usage.used, first.usage.used);
    }
    assert_eq!(replica.kept(&policy).await, 8);
}

async fn a_denied_request_id_can_be_retried(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 2).await;
    assert!(!replica.try_increment(&policy.id, 1, "req_1").await.unwrap().allowed);
    replica.policies.replace(&policy.id, &draft(3), &replica.author()).await.unwrap();
    let done = replica.try_increment(&policy.id, 1, "req_1").await.unwrap();
    assert!(done.allowed && !done.replayed);
    assert_eq!(done.usage.used, 3);
}

async fn two_replicas_never_exceed_the_limit(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(500)).await;
    // Each of 64 clients continues until it is denied, so that transactions overlap.
    let client = async |number: usize| {
        let (replica, amount) = ([&replica, &other][number % 2], 1 + number as u64 % 3);
        let mut admitted = 0;
        while replica.increment(&policy.id, amount).await.allowed {
            admitted += amount;
        }
        admitted
    };
    let admitted: u64 = join_all((0..64).map(client)).await.into_iter().sum();
    assert_eq!(admitted, 500, "everything that fitted was admitted");
    assert_eq!(replica.kept(&policy).await, 500);
}

async fn many_policies_share_a_transaction(home: &Home) {
    let replica = Replica::start(home).await;
    let mut policies = Vec::new();
    for number in 0..20 {
        let draft = Draft { subject_id: format!("t{number}").into(), ..draft(1 + number) };
        policies.push(replica.create(draft).await);
    }
    let sent = (0..400).map(|number| replica.increment(&policies[number % 20].id, 1));
    let admitted = join_all(sent).await.iter().filter(|answer| answer.allowed).count();
    assert_eq!(admitted, (1..=20).sum::<usize>());
    for (number, policy) in policies.iter().enumerate() {
        assert_eq!(replica.kept(policy).await, 1 + number as u64);
    }
}

async fn a_disabled_policy_admits_and_counts_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 2).await;
    other.quotas.catalog().refresh().await.unwrap();
    let disable = Draft { enabled: false.into(), ..Draft::default() };
    replica.policies.amend(&policy.id, &disable, &replica.author()).await.unwrap();
    // One replica has a stale catalog, and the ledger decides.
    for replica in [&replica, &other] {
        let done = replica.increment(&policy.id, 1).await;
        assert!(done.allowed);
        assert_eq!(done.usage.used, 2);
        assert!(replica.try_increment(&policy.id, 1, "req_1").await.unwrap().allowed);
        let check = replica.usage.check(&policy.id, Some(2)).await.unwrap();
        assert_eq!(check.usage.used, 2);
    }
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (2, Some(2)));

    // A policy that was never enabled has no usage.
    let never = Draft { enabled: false.into(), subject_id: "t2".to_owned().into(), ..draft(2) };
    let never = replica.create(never).await;
    assert_eq!(replica.increment(&never.id, 1).await.usage.used, 0);
    assert!(replica.usage.check(&never.id, None).await.unwrap().allowed);
}

async fn a_changed_limit_applies_to_existing_usage(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 8).await;
    other.quotas.catalog().refresh().await.unwrap();
    replica.policies.replace(&policy.id, &draft(5), &replica.author()).await.unwrap();
    let refused = replica.increment(&policy.id, 1).await;
    assert!(!refused.allowed && refused.usage.exceeded);
    assert_eq!((refused.usage.used, refused.usage.remaining), (8, 0));
    assert_eq!(refused.usage.usage_percent.to_string(), "160");
    // The other replica still has a limit of 10, but the ledger decides.
    let refused = other.increment(&policy.id, 1).await;
    assert!(!refused.allowed);
    assert_eq!((refused.usage.used, refused.usage.limit), (8, 5));
    replica.policies.replace(&policy.id, &draft(9), &replica.author()).await.unwrap();
    assert!(replica.increment(&policy.id, 1).await.allowed);
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (9, Some(9)));
}

async fn amounts_and_request_ids_have_bounds(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let long = "x".repeat(129);
    for (amount, request_id, expected) in [
        (0, None, "amount must be greater than 0"),
        (11, None, "amount must be at most the limit of 10"),
        ((1 << 53) + 1, None, "amount must be at most 9007199254740992"),
        (1, Some(""), "request_id must have 1 to 128 printable characters"),
        (1, Some("a\nb"), "request_id must have 1 to 128 printable characters"),
        (1, Some(&*long), "request_id must have 1 to 128 printable characters"),
    ] {
        let error = replica.increments.increment(&policy.id, amount, request_id).await.unwrap_err();
        let IncrementError::Invalid(errors) = error else { panic!("{error}") };
        let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
        assert_eq!(messages, [expected]);
    }
    let both = replica.increments.increment(&policy.id, 0, Some("")).await.unwrap_err();
    assert!(matches!(both, IncrementError::Invalid(errors) if errors.len() == 2));
    assert!(replica.usage.check(&policy.id, Some(11)).await.is_err());
    assert_eq!(replica.kept(&policy).await, 0);
    assert!(replica.try_increment(&policy.id, 10, &"é".repeat(128)).await.unwrap().allowed);
}

async fn a_check_consumes_nothing(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 7).await;
    for (amount, allowed) in [(None, true), (Some(3), true), (Some(4), false), (Some(10), false)] {
        let checked = replica.usage.check(&policy.id, amount).await.unwrap();
        assert_eq!((checked.allowed, checked.usage.used), (allowed, 7), "{amount:?}");
    }
    assert_eq!((replica.kept(&policy).await, replica.shown(&policy).await), (7, Some(7)));
}
