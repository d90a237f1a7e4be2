//! Periods: an increment counts in the one in which it was admitted.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use headgate_quota::{
    Draft, Increment, IncrementOutcome, Operation, Page, Patience, QuotaLedger, QuotaPolicy,
};

use super::setup::{Replica, draft, moment};
use crate::support::{Home, on_both};

on_both!(
    days_end_at_midnight,
    months_end_with_their_last_day,
    days_end_at_midnight_of_the_time_zone,
    a_late_commit_counts_in_its_own_period,
    increments_at_midnight_count_in_the_right_day,
    request_ids_are_unique_per_period,
    history_lists_the_newest_period_first,
);

/// Consumes everything at `last`, and one unit at `first`, a moment later in the next period.
async fn turns(replica: &Replica, policy: &QuotaPolicy, last: &str, first: &str, names: [&str; 2]) {
    replica.clock.set(moment(last));
    let done = replica.increment(&policy.id, 2).await;
    assert_eq!((done.allowed, &*done.usage.span.name), (true, names[0]), "{last}");
    assert_eq!(done.usage.span.end, moment(first), "{last}");
    assert!(!replica.increment(&policy.id, 1).await.allowed, "{last}");
    replica.clock.set(moment(first));
    let done = replica.increment(&policy.id, 1).await;
    assert_eq!((done.allowed, done.usage.used), (true, 1), "{first}");
    assert_eq!((&*done.usage.span.name, done.usage.span.start), (names[1], moment(first)));
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 1);
}

async fn days_end_at_midnight(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    let days = [
        ("2026-02-23T23:59:59.999999Z", "2026-02-24T00:00:00Z", ["2026-02-23", "2026-02-24"]),
        ("2026-12-31T23:59:59.999999Z", "2027-01-01T00:00:00Z", ["2026-12-31", "2027-01-01"]),
        ("2028-02-29T23:59:59.999999Z", "2028-03-01T00:00:00Z", ["2028-02-29", "2028-03-01"]),
    ];
    for (last, first, names) in days {
        turns(&replica, &policy, last, first, names).await;
    }
}

async fn months_end_with_their_last_day(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(Draft { period: "monthly".to_owned().into(), ..draft(2) }).await;
    let months = [
        ("2026-01-31T23:59:59.999999Z", "2026-02-01T00:00:00Z", ["2026-01", "2026-02"]),
        ("2026-03-31T23:59:59.999999Z", "2026-04-01T00:00:00Z", ["2026-03", "2026-04"]),
        ("2028-02-29T23:59:59.999999Z", "2028-03-01T00:00:00Z", ["2028-02", "2028-03"]),
    ];
    for (last, first, names) in months {
        turns(&replica, &policy, last, first, names).await;
    }
    // It does not end with a day.
    replica.clock.set(moment("2028-03-02T00:00:00Z"));
    assert_eq!(replica.increment(&policy.id, 1).await.usage.used, 2);
}

async fn days_end_at_midnight_of_the_time_zone(home: &Home) {
    let replica = Replica::start(home).await;
    let new_york = [
        // 23 hours, then 25.
        ("2026-03-08T04:59:59.999999Z", "2026-03-08T05:00:00Z", ["2026-03-07", "2026-03-08"]),
        ("2026-03-09T03:59:59.999999Z", "2026-03-09T04:00:00Z", ["2026-03-08", "2026-03-09"]),
        ("2026-11-02T04:59:59.999999Z", "2026-11-02T05:00:00Z", ["2026-11-01", "2026-11-02"]),
    ];
    let berlin = [
        ("2026-03-28T22:59:59.999999Z", "2026-03-28T23:00:00Z", ["2026-03-28", "2026-03-29"]),
        ("2026-10-25T22:59:59.999999Z", "2026-10-25T23:00:00Z", ["2026-10-25", "2026-10-26"]),
    ];
    for (zone, days) in [("America/New_York", &new_york[..]), ("Europe/Berlin", &berlin)] {
        let draft = Draft {
            time_zone: zone.to_owned().into(),
            subject_id: zone.to_owned().into(),
            ..draft(2)
        };
        let policy = replica.create(draft).await;
        for (last, first, names) in days {
            // The previous iteration may have begun the day.
            replica.clock.set(moment(last));
            replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
            turns(&replica, &policy, last, first, *names).await;
        }
    }
}

async fn a_late_commit_counts_in_its_own_period(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    let admitted = moment("2026-02-23T23:59:59.9Z");
    let span = Arc::new(policy.spec.span(admitted).unwrap());
    let late = Increment {
        policy: policy.id.clone(),
        span: Arc::clone(&span),
        amount: 3,
        request_id: Some("req_1".to_owned()),
        at: admitted,
    };
    replica.clock.set(moment("2026-02-24T00:00:05Z"));
    replica.increment(&policy.id, 1).await;
    let commit = async |increments: Vec<Increment>| {
        let operations: Vec<_> = increments.into_iter().map(Operation::from).collect();
        let posted = replica.kept.commit(&operations, Patience::Short).await.unwrap();
        let results = posted.iter().map(|posted| posted.result.increment().unwrap());
        results.map(|result| (result.outcome, result.units.used)).collect::<Vec<_>>()
    };
    assert_eq!(commit(vec![late.clone()]).await, [(IncrementOutcome::Charged, 3)]);
    // Also if the period was closed in the meantime.
    assert_eq!(replica.house.close_periods().await.unwrap(), 1);
    let later = Increment { request_id: None, ..late.clone() };
    let expected = [(IncrementOutcome::Replayed, 3), (IncrementOutcome::Charged, 6)];
    assert_eq!(commit(vec![late, later]).await, expected);
    assert_eq!(replica.kept(&policy).await, 1);
}

async fn increments_at_midnight_count_in_the_right_day(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = replica.create(draft(1_000)).await;
    let midnight = moment("2026-02-24T00:00:00Z");
    replica.clock.set(moment("2026-02-23T23:59:59.9Z"));
    let sent = (0..200_u32).map(|number| {
        let replica = if number % 2 == 0 { &replica } else { &other };
        let id = &policy.id;
        async move {
            for _ in 0..number / 10 {
                tokio::task::yield_now().await;
            }
            if number == 100 {
                replica.clock.set(midnight);
            }
            replica.increment(id, 1).await
        }
    });
    let closing = async {
        while other.house.close_periods().await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
    };
    let (answers, ()) = tokio::join!(join_all(sent), closing);
    assert!(answers.iter().all(|answer| answer.allowed));
    let history = replica.kept.history(&policy.id, Page::DEFAULT).await.unwrap().items;
    assert_eq!(history.iter().map(|period| period.used).sum::<u64>(), 200);
    for period in history {
        let counted = answers.iter().filter(|answer| answer.usage.span == period.span);
        assert_eq!(counted.count() as u64, period.used, "{}", period.span.name);
    }
}

async fn request_ids_are_unique_per_period(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(Draft { period: "monthly".to_owned().into(), ..draft(9) }).await;
    replica.try_increment(&policy.id, 1, "req_1").await.unwrap();
    replica.pass(Duration::from_hours(24));
    assert!(replica.try_increment(&policy.id, 1, "req_1").await.unwrap().replayed);
    replica.clock.set(moment("2026-03-01T00:00:00Z"));
    let next = replica.try_increment(&policy.id, 1, "req_1").await.unwrap();
    assert!(!next.replayed && next.usage.used == 1);
}

async fn history_lists_the_newest_period_first(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    for used in 1..=5 {
        replica.increment(&policy.id, used).await;
        replica.pass(Duration::from_hours(24));
    }
    replica.house.close_periods().await.unwrap();
    replica.increment(&policy.id, 6).await;
    let list = async |page| {
        let page = Page::new(page, 4).unwrap();
        let listed = replica.usage.history(&policy.id, page).await.unwrap();
        assert_eq!(listed.total, 6);
        listed.items
    };
    let shown: Vec<_> = list(1).await.into_iter().map(|one| (one.span.name, one.used)).collect();
    let expected = [("2026-02-28", 6), ("2026-02-27", 5), ("2026-02-26", 4), ("2026-02-25", 3)];
    assert_eq!(shown, expected.map(|(name, used)| (name.to_owned(), used)));
    let rest = list(2).await;
    assert_eq!((rest.len(), rest[1].used, rest[1].limit), (2, 1, 10));
    assert!(rest[1].closed_at.is_some() && list(1).await[0].closed_at.is_none());
}
