//! An unavailable or slow ledger: only durable increments are acknowledged.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use futures_util::future::join_all;
use headgate::ManualClock;
use headgate_quota::{
    RepositoryError,
    usecase::{IncrementError, IncrementUsage},
};
use headgate_store_memory::MemoryStore;
use headgate_testkit::{Postgres, require};

use super::setup::{Replica, draft};
use crate::support::{Home, TIMEOUT, at, on_both, run};

on_both!(
    an_unavailable_ledger_fails_increments,
    a_full_queue_rejects_increments,
    clients_that_disconnect_while_waiting_are_not_charged,
    a_stopping_server_answers_waiting_clients,
);

fn is_outage(error: &IncrementError) -> bool {
    matches!(error, IncrementError::Repository(RepositoryError::Unavailable(_)))
}

async fn an_unavailable_ledger_fails_increments(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(10)).await;
    replica.increment(&policy.id, 4).await;
    replica.database.close().await;
    let error = replica.increments.increment(&policy.id, 1, None).await.unwrap_err();
    assert!(is_outage(&error), "{error}");
    assert_eq!(replica.shown(&policy).await, Some(4));
    // Usage is still available from the counter.
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 4);
    replica.counter.fail(true);
    let error = replica.usage.usage(&policy.id).await.unwrap_err();
    assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
}

/// Locks the ledger, so that nothing is committed until it is released.
const HOLD: (&str, &str) = ("BEGIN; LOCK TABLE quota.quota_usages", "BEGIN IMMEDIATE");

fn hold(home: &Home) -> &'static str {
    match home {
        Home::Postgres(_) => HOLD.0,
        Home::Sqlite(_) => HOLD.1,
    }
}

fn small(home: &Home, capacity: usize) -> Replica {
    let clock = Arc::new(ManualClock::new(at(0)));
    let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
    Replica::with(home.open(), clock, store, capacity)
}

async fn a_full_queue_rejects_increments(home: &Home) {
    let policy = Replica::start(home).await.create(draft(100)).await;
    let replica = small(home, 4);
    replica.quotas.catalog().refresh().await.unwrap();
    let mut console = home.console().await;
    console.run(hold(home)).await;

    let sent = (0..40).map(|_| replica.increments.increment(&policy.id, 1, None));
    // Runs after all have been sent.
    let let_go = async { console.run("ROLLBACK").await };
    let (answers, _) = tokio::join!(join_all(sent), let_go);

    let admitted = answers.iter().filter(|answer| answer.is_ok()).count();
    let overloaded =
        answers.iter().filter(|answer| matches!(answer, Err(IncrementError::Overloaded))).count();
    assert_eq!(admitted + overloaded, 40);
    assert!((4..=12).contains(&admitted), "{admitted}");
    assert_eq!(replica.kept(&policy).await, admitted as u64);
    assert_eq!(replica.shown(&policy).await, Some(admitted as u64));
}

async fn clients_that_disconnect_while_waiting_are_not_charged(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(100)).await;
    let mut console = home.console().await;
    console.run(hold(home)).await;
    let first = replica.increments.increment(&policy.id, 1, None);
    let rest = async {
        // The first is in flight; the others wait behind it and give up.
        while replica.increments.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            let impatient = replica.increments.increment(&policy.id, 1, None);
            let waiting = async {
                while replica.increments.waiting() == 0 {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                answer = impatient => panic!("{answer:?}"),
                () = waiting => {}
            }
        }
        console.run("ROLLBACK").await;
    };
    let (first, ()) = tokio::join!(first, rest);
    assert!(first.unwrap().allowed);
    // The counter does not deny later increments because of them.
    assert_eq!(replica.increment(&policy.id, 1).await.usage.used, 2);
    assert_eq!(replica.kept(&policy).await, 2);
    assert!(replica.increment(&policy.id, 98).await.allowed);
}

async fn a_stopping_server_answers_waiting_clients(home: &Home) {
    let replica = Replica::start(home).await;
    let policy = replica.create(draft(100)).await;
    let (increments, committer) = IncrementUsage::new(&replica.quotas, 100);
    let running = tokio::spawn(committer.run());
    let sent = (0..20).map(|_| increments.increment(&policy.id, 1, None));
    assert!(join_all(sent).await.into_iter().all(|answer| answer.unwrap().allowed));
    // It ends once all senders are gone.
    drop(increments);
    tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap();

    let (increments, committer) = IncrementUsage::new(&replica.quotas, 100);
    let stopping = async {
        // One is already waiting.
        drop(committer);
    };
    let (lost, ()) = tokio::join!(increments.increment(&policy.id, 1, None), stopping);
    let unsure = lost.unwrap_err();
    let unsure = matches!(unsure, IncrementError::Repository(RepositoryError::Unconfirmed(_)));
    assert!(unsure, "it may have been committed");
    let error = increments.increment(&policy.id, 1, None).await.unwrap_err();
    assert!(is_outage(&error), "{error}");
    assert_eq!(replica.usage.usage(&policy.id).await.unwrap().used, 20);
}

/// Each request is retried under its id until it succeeds, while connections keep breaking.
#[test]
fn broken_connections_do_not_charge_twice() {
    let home = require!(Home::postgres());
    run(async {
        let replica = Replica::start(&home).await;
        let other = replica.beside(&home);
        let policy = replica.create(draft(1_000)).await;
        other.quotas.catalog().refresh().await.unwrap();
        let failures = AtomicUsize::new(0);
        let client = async |number: usize| {
            let replica = [&replica, &other][number % 2];
            let mut sent = 0_u64;
            // Until enough have failed.
            while sent == 0 || failures.load(Relaxed) < 20 {
                let id = format!("req_{number}_{sent}");
                while let Err(error) = replica.try_increment(&policy.id, 1, &id).await {
                    assert!(matches!(error, IncrementError::Repository(_)), "{error}");
                    failures.fetch_add(1, Relaxed);
                }
                sent += 1;
            }
            sent
        };
        let mut console = home.console().await;
        let breaking = async {
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            while failures.load(Relaxed) < 20 {
                console.run(kill).await;
                // Something is in flight again when this returns.
                let _ = replica.database.ping().await;
            }
        };
        let (sent, ()) = tokio::join!(join_all((0..8).map(client)), breaking);
        let sent: u64 = sent.into_iter().sum();
        assert_eq!(replica.kept(&policy).await, sent.min(1_000));
    });
}

#[test]
fn a_restarted_ledger_keeps_acknowledged_units() {
    let server = require!(Postgres::start());
    run(async {
        let config = headgate_persistence::DatabaseConfig::from_url(&server.url()).unwrap();
        let database = headgate_persistence::Database::open(&config.connect_timeout(TIMEOUT));
        database.migrate().await.unwrap();
        let clock = Arc::new(ManualClock::new(at(0)));
        let store = Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
        let replica = Replica::with(database, clock, store, 100);
        let policy = replica.create(draft(1_000)).await;
        let mut acknowledged = 0;
        let mut in_doubt = 0;
        for round in 0..3 {
            let sent = (0..8).map(|_| replica.increments.increment(&policy.id, 1, None));
            let restart = async {
                if round == 1 {
                    server.stop();
                    server.start_again();
                }
            };
            let (answers, ()) = tokio::join!(join_all(sent), restart);
            for answer in answers {
                match answer {
                    Ok(done) => acknowledged += u64::from(done.allowed),
                    Err(IncrementError::Repository(RepositoryError::Unconfirmed(_))) => {
                        in_doubt += 1;
                    }
                    Err(error) => assert!(is_outage(&error), "{error}"),
                }
            }
        }
        let kept = replica.kept(&policy).await;
        assert!((acknowledged..=acknowledged + in_doubt).contains(&kept), "{kept}");
        assert!(acknowledged >= 16);
    });
}
