//! Events: recorded once, in order, and delivered to all sinks.

use std::{future::poll_fn, task::Poll};

use futures_util::future::join_all;
use headgate_quota::{Backlog, Draft, EventKind, QuotaEventLog, QuotaPolicy};
use headgate_testkit::require;

use super::setup::{Replica, draft};
use crate::support::{Home, TIMEOUT, at, on_both, run};

on_both!(
    threshold_and_limit_are_recorded_once,
    one_increment_can_record_both_events,
    a_denial_before_the_limit_is_recorded,
    without_a_threshold_only_the_limit_is_recorded,
    a_threshold_of_zero_is_reached_by_the_first_increment,
    many_replicas_record_an_event_once,
    a_lowered_limit_is_recorded_with_the_next_increment,
    events_are_recorded_again_in_the_next_period,
    events_stay_undelivered_until_marked,
    readers_miss_no_event,
);

const THRESHOLD: &str = "QUOTA_THRESHOLD_REACHED";
const EXCEEDED: &str = "QUOTA_EXCEEDED";

async fn with_threshold(replica: &Replica, limit: i64, percent: i64) -> QuotaPolicy {
    replica.create(Draft { alert_threshold_percent: percent.into(), ..draft(limit) }).await
}

async fn threshold_and_limit_are_recorded_once(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 10, 80).await;
    for _ in 0..7 {
        replica.increment(&policy.id, 1).await;
    }
    assert_eq!(replica.event_kinds().await, []);
    for _ in 0..8 {
        replica.increment(&policy.id, 1).await;
    }
    assert_eq!(replica.event_kinds().await, [(THRESHOLD, 8), (EXCEEDED, 10)]);

    let [threshold, exceeded] = replica.events().await.try_into().unwrap();
    assert!(threshold.seq < exceeded.seq);
    let (threshold, exceeded) = (threshold.event, exceeded.event);
    assert_eq!(threshold.event_id, format!("{}:2026-02-23:threshold", policy.id));
    assert_eq!(exceeded.event_id, format!("{}:2026-02-23:exceeded", policy.id));
    for event in [&threshold, &exceeded] {
        assert_eq!((&event.quota_id, &event.subject), (&policy.id, &policy.spec.subject));
        assert_eq!((event.period, event.limit, event.at), (policy.spec.period, 10, at(0)));
        assert_eq!(event.reset_at, policy.spec.span(at(0)).unwrap().end);
    }
    assert_eq!(threshold.alert_threshold_percent, Some(80));
}

async fn one_increment_can_record_both_events(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 10, 80).await;
    replica.increment(&policy.id, 10).await;
    assert_eq!(replica.event_kinds().await, [(THRESHOLD, 10), (EXCEEDED, 10)]);
}

async fn a_denial_before_the_limit_is_recorded(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 10, 80).await;
    replica.increment(&policy.id, 7).await;
    assert!(!replica.increment(&policy.id, 4).await.allowed);
    assert_eq!(replica.event_kinds().await, [(EXCEEDED, 7)]);
    replica.increment(&policy.id, 3).await;
    assert_eq!(replica.event_kinds().await, [(EXCEEDED, 7), (THRESHOLD, 10)]);
}

async fn without_a_threshold_only_the_limit_is_recorded(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(2)).await;
    replica.increment(&policy.id, 1).await;
    replica.increment(&policy.id, 1).await;
    assert_eq!(replica.event_kinds().await, [(EXCEEDED, 2)]);
}

async fn a_threshold_of_zero_is_reached_by_the_first_increment(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 1_000, 0).await;
    assert_eq!(replica.event_kinds().await, []);
    replica.increment(&policy.id, 1).await;
    replica.increment(&policy.id, 1).await;
    assert_eq!(replica.event_kinds().await, [(THRESHOLD, 1)]);
}

async fn many_replicas_record_an_event_once(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let policy = with_threshold(&replica, 20, 50).await;
    let flood = async || {
        let sent = (0..64_usize).map(|number| {
            let replica = if number % 2 == 0 { &replica } else { &other };
            replica.increment(&policy.id, 1)
        });
        join_all(sent).await;
    };
    flood().await;
    replica.resets.reset(&policy.id, "again", replica.author()).await.unwrap();
    flood().await;
    for limit in [40, 10, 60] {
        let change = Draft { limit: limit.into(), ..Draft::default() };
        replica.policies.amend(&policy.id, &change, &replica.author()).await.unwrap();
        flood().await;
    }
    let recorded = replica.event_kinds().await;
    assert_eq!(recorded, [(THRESHOLD, 10), (EXCEEDED, 20)]);
}

async fn a_lowered_limit_is_recorded_with_the_next_increment(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 100, 80).await;
    replica.increment(&policy.id, 50).await;
    let lower = Draft { limit: 60.into(), ..Draft::default() };
    replica.policies.amend(&policy.id, &lower, &replica.author()).await.unwrap();
    assert_eq!(replica.event_kinds().await, []);
    replica.increment(&policy.id, 1).await;
    assert_eq!(replica.event_kinds().await, [(THRESHOLD, 51)]);
    let lower = Draft { limit: 51.into(), ..Draft::default() };
    replica.policies.amend(&policy.id, &lower, &replica.author()).await.unwrap();
    assert!(!replica.increment(&policy.id, 1).await.allowed);
    assert_eq!(replica.event_kinds().await, [(THRESHOLD, 51), (EXCEEDED, 51)]);
}

async fn events_are_recorded_again_in_the_next_period(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = with_threshold(&replica, 2, 50).await;
    for _ in 0..2 {
        replica.increment(&policy.id, 2).await;
        replica.pass(std::time::Duration::from_hours(24));
    }
    let ids: Vec<_> = replica.events().await.into_iter().map(|one| one.event.event_id).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids[3].ends_with(":2026-02-24:exceeded"), "{ids:?}");
}

async fn events_stay_undelivered_until_marked(home: &Home) {
    let replica = Replica::start(home).await;
    for number in 0..3 {
        let draft = Draft { subject_id: format!("t{number}").into(), ..draft(1) };
        let policy = replica.create(draft).await;
        replica.increment(&policy.id, 1).await;
        replica.pass(std::time::Duration::from_secs(1));
    }
    let log = &replica.kept;
    let all = log.undelivered("kafka", 0, 100).await.unwrap();
    assert_eq!(all, replica.events().await);
    assert_eq!(log.undelivered("kafka", 0, 2).await.unwrap(), all[..2]);
    assert_eq!(log.undelivered("kafka", all[0].seq, 1).await.unwrap(), all[1..2]);
    let backlog = log.backlog("kafka").await.unwrap();
    assert_eq!(backlog, Backlog { events: 3, oldest: Some(at(0)) });

    // The last one first.
    log.delivered("webhook", &[&all[2].event.event_id], at(9)).await.unwrap();
    assert_eq!(log.undelivered("webhook", 0, 100).await.unwrap(), all[..2]);
    let ids = [&*all[0].event.event_id, "quota_unknown:2026-02-23:exceeded"];
    for _ in 0..2 {
        log.delivered("kafka", &ids, at(9)).await.unwrap();
    }
    log.delivered("kafka", &[], at(9)).await.unwrap();

    assert_eq!(log.undelivered("kafka", 0, 100).await.unwrap(), all[1..]);
    let backlog = log.backlog("kafka").await.unwrap();
    assert_eq!(backlog, Backlog { events: 2, oldest: Some(at(1_000)) });
    let ids: Vec<&str> = all.iter().map(|logged| &*logged.event.event_id).collect();
    log.delivered("webhook", &ids, at(9)).await.unwrap();
    assert_eq!(log.backlog("webhook").await.unwrap(), Backlog::default());
    // An unknown sink has none of them.
    assert_eq!(log.undelivered("pager", 0, 100).await.unwrap(), all);

    let policy = replica.create(draft(1)).await;
    replica.increment(&policy.id, 1).await;
    let [new] = log.undelivered("webhook", 0, 100).await.unwrap().try_into().unwrap();
    assert_eq!(new.event.quota_id, policy.id);
}

/// Two replicas record events while a reader follows them.
async fn readers_miss_no_event(home: &Home) {
    let replica = Replica::start(home).await;
    let other = replica.beside(home);
    let mut policies = Vec::new();
    for number in 0..40 {
        let draft = Draft { subject_id: format!("t{number}").into(), ..draft(1) };
        policies.push(replica.create(draft).await);
    }
    other.quotas.catalog().refresh().await.unwrap();
    let telling = async {
        let sent = policies.iter().enumerate().map(|(number, policy)| {
            let replica = if number % 2 == 0 { &replica } else { &other };
            async move {
                // Spread out, so that there are many transactions.
                for _ in 0..number / 4 {
                    tokio::task::yield_now().await;
                }
                replica.increment(&policy.id, 1).await
            }
        });
        join_all(sent).await;
    };
    let reading = async {
        let mut seen = Vec::new();
        while seen.len() < policies.len() {
            let last = seen.last().map_or(0, |logged: &headgate_quota::LoggedEvent| logged.seq);
            seen.extend(replica.kept.after(last, 7).await.unwrap());
        }
        seen
    };
    let both = async { tokio::join!(telling, reading).1 };
    let seen = tokio::time::timeout(TIMEOUT, both).await.expect("a reader missed an event");
    assert_eq!(seen, replica.events().await);
    assert!(seen.iter().all(|logged| logged.event.kind == EventKind::Exceeded));
}

/// A position is assigned only when all earlier ones are visible.
#[test]
fn writers_of_events_are_serialized() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let policy = replica.create(draft(1)).await;
        let (mut console, mut watcher) = (home.console().await, home.console().await);
        console.run("BEGIN").await;
        console
            .run("SELECT pg_advisory_xact_lock(hashtextextended('headgate.quota_events', 0))")
            .await;
        let waits = async {
            // Not with `psql`: it may take longer to start than a statement may wait.
            let waiting = "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT granted";
            while watcher.run(waiting).await == 0 {
                tokio::task::yield_now().await;
            }
        };
        let increment = replica.increment(&policy.id, 1);
        tokio::pin!(increment);
        tokio::select! {
            done = &mut increment => panic!("it did not wait: {done:?}"),
            () = waits => {}
        }
        assert_eq!(replica.events().await, []);
        console.run("COMMIT").await;
        assert!(increment.await.allowed);
        assert_eq!(replica.event_kinds().await, [(EXCEEDED, 1)]);
    });
}

#[test]
fn one_process_leads_until_its_connection_is_lost() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let other = replica.beside(&home);
        let mut first = replica.kept.lead("kafka").await.unwrap().unwrap();
        assert!(other.kept.lead("kafka").await.unwrap().is_none());
        assert!(other.kept.lead("webhook").await.unwrap().is_some());
        assert!(first.holds().await);

        // The server is shared: other tests hold locks in their own databases.
        let kill = "SELECT pg_terminate_backend(l.pid) FROM pg_locks l
            JOIN pg_database d ON d.oid = l.database
            WHERE l.locktype = 'advisory' AND d.datname = current_database()";
        home.console().await.run(kill).await;
        assert!(!first.holds().await);
        let next = leading(&other).await;
        assert!(replica.kept.lead("kafka").await.unwrap().is_none());

        drop(next);
        leading(&replica).await;
    });
}

/// Selects the advisory locks of this test.
const LOCKS: &str = "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
    WHERE l.locktype = 'advisory' AND d.datname = current_database()";

/// A reload aborts tasks that may be about to lead: their futures are dropped.
#[test]
fn an_aborted_attempt_to_lead_leaves_no_lock_behind() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let other = replica.beside(&home);
        let mut console = home.console().await;
        for last in 1..=8 {
            // A follower has a connection that knows the statement.
            let leadership = leading(&other).await;
            assert!(replica.kept.lead("kafka").await.unwrap().is_none());
            drop(leadership);
            while console.run(LOCKS).await > 0 {
                tokio::task::yield_now().await;
            }
            // Dropped after this many polls, some of which are right after the request.
            let (mut attempt, mut polls) = (replica.kept.lead("kafka"), 0);
            poll_fn(|context| {
                polls += 1;
                let is_over = attempt.as_mut().poll(context).is_ready() || polls == last;
                if is_over { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            drop(attempt);
            drop(leading(&other).await);
        }
    });
}

/// Waits until the server notices that a connection is lost.
async fn leading(replica: &Replica) -> Box<dyn headgate_quota::Leadership> {
    let trying = async {
        loop {
            if let Some(leadership) = replica.kept.lead("kafka").await.unwrap() {
                return leadership;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, trying).await.expect("leadership is never available")
}

#[test]
fn every_process_leads_on_sqlite() {
    run(async {
        let home = Home::sqlite();
        let replica = Replica::start(&home).await;
        let mut leadership = replica.kept.lead("kafka").await.unwrap().unwrap();
        assert!(leadership.holds().await);
    });
}
