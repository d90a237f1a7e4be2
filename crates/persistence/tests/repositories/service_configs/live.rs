//! Documents that change while services run.

use std::{sync::Arc, time::Duration};

use headgate::SystemClock;
use headgate_persistence::{Database, DatabaseConfig};
use headgate_service_config::{LoadError, Reloader, ServiceConfigRepository, Source, Watcher};
use headgate_testkit::{Postgres, require};
use sqlx::postgres::PgListener;
use tokio::{task::JoinHandle, time::timeout};

use super::{events, put, relay::RelayDocument};
use crate::support::{Home, TIMEOUT, run};

/// A poll interval that never elapses in a test.
const NEVER: Duration = Duration::from_secs(3_600);

struct Running {
    relay: Watcher<RelayDocument>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(database: &Database, every: Duration) -> Self {
        let relay = Watcher::new();
        let repository = Arc::new(database.service_configs());
        let clock = Arc::new(SystemClock::new());
        let reloader = Reloader::new(repository, clock, "test").every(every).watch(&relay);
        Self { relay, task: tokio::spawn(reloader.run()) }
    }

    fn limit(&self) -> u64 {
        self.relay.with(|relay| relay.events_per_minute)
    }

    /// Waits until the current document is as `expected`.
    async fn until(&self, patience: Duration, expected: impl Fn(&Self) -> bool) {
        let mut received = self.relay.subscribe();
        let seen = async {
            while !expected(self) {
                received.changed().await.unwrap();
            }
        };
        let in_time = timeout(patience, seen).await.is_ok();
        assert!(in_time, "{} {:?}", self.limit(), self.relay.source());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[test]
fn changes_are_notified_without_polling() {
    let home = require!(Home::postgres());
    run(async {
        let database = home.migrated().await;
        let running = Running::start(&database, NEVER);
        let missing = Source::SafeDefaults { problem: LoadError::Missing };
        running.until(TIMEOUT, |running| running.relay.source() == missing).await;
        // The listener must be connected before the first notification.
        put(&database.service_configs(), events(10), None).await.unwrap();
        running.until(TIMEOUT, |running| running.limit() == 10).await;

        let writer = home.open().service_configs();
        for n in [20, 30, 40] {
            put(&writer, events(n), None).await.unwrap();
            running.until(TIMEOUT, |running| running.limit() == n).await;
        }
        assert_eq!(running.relay.source(), Source::Document { version: 4 });
    });
}

#[test]
fn notifications_contain_service_and_version() {
    let home = require!(Home::postgres());
    run(async {
        let documents = home.migrated().await.service_configs();
        let mut listener = PgListener::connect(&home.url()).await.unwrap();
        listener.listen("cn_admin_config").await.unwrap();
        for (n, expected) in [(10, "relay:1"), (20, "relay:2")] {
            put(&documents, events(n), None).await.unwrap();
            let received = timeout(TIMEOUT, listener.recv()).await.unwrap().unwrap();
            assert_eq!(received.payload(), expected);
        }
    });
}

#[test]
fn polling_finds_changes_without_notification() {
    for home in [Home::sqlite(), require!(Home::postgres())] {
        run(async {
            let database = home.migrated().await;
            let documents = database.service_configs();
            put(&documents, events(10), None).await.unwrap();
            let running = Running::start(&database, Duration::from_millis(100));
            running.until(TIMEOUT, |running| running.limit() == 10).await;

            let mut console = home.console().await;
            let sql = "UPDATE service_configs SET version = 2, \
                config_json = '{\"rate_limit\": {\"ws\": {\"events_per_minute\": 77}}}'";
            console.run(sql).await;
            running.until(TIMEOUT, |running| running.limit() == 77).await;

            console
                .run("UPDATE service_configs SET version = 3, config_json = '{\"rate_limit\": 1}'")
                .await;
            let broken = |running: &Running| {
                matches!(
                    running.relay.source(),
                    Source::LastGood { version: 2, problem: LoadError::Invalid { version: 3, .. } }
                )
            };
            running.until(TIMEOUT, broken).await;
            assert_eq!(running.limit(), 77);
            put(&documents, events(88), Some(3)).await.unwrap();
            running.until(TIMEOUT, |running| running.limit() == 88).await;
        });
    }
}

#[test]
fn instances_report_their_version() {
    let home = require!(Home::postgres());
    run(async {
        let database = home.migrated().await;
        let documents = database.service_configs();
        let running = Running::start(&database, NEVER);
        put(&documents, events(10), None).await.unwrap();
        running.until(TIMEOUT, |running| running.limit() == 10).await;
        let received = async {
            loop {
                let states = documents.states().await.unwrap();
                if states.iter().any(|state| state.version == Some(1)) {
                    return states;
                }
                tokio::task::yield_now().await;
            }
        };
        let states = timeout(TIMEOUT, received).await.unwrap();
        assert_eq!(states.len(), 1);
        assert_eq!((&*states[0].service, &*states[0].instance), ("relay", "test"));
        assert!(documents.kinds().await.unwrap().get("relay").is_some());
        assert_eq!(states[0].source, "document");
    });
}

#[test]
fn outages_fall_back_to_defaults_or_the_last_valid_document() {
    let server = require!(Postgres::start());
    run(async {
        let config = DatabaseConfig::from_url(&server.url()).unwrap();
        let patient = Database::open(&config.clone().connect_timeout(TIMEOUT));
        patient.migrate().await.unwrap();
        put(&patient.service_configs(), events(10), None).await.unwrap();
        server.stop();
        let database = Database::open(&config.connect_timeout(Duration::from_secs(1)));

        let running = Running::start(&database, Duration::from_millis(200));
        let unread = |running: &Running| match running.relay.source() {
            Source::SafeDefaults { problem: LoadError::Unreadable(why) } => {
                why.contains("unavailable")
            }
            _ => false,
        };
        running.until(TIMEOUT, unread).await;
        assert_eq!(running.limit(), 30);

        server.start_again();
        running.until(TIMEOUT, |running| running.limit() == 10).await;
        server.stop();
        let kept = |running: &Running| {
            matches!(
                running.relay.source(),
                Source::LastGood { version: 1, problem: LoadError::Unreadable(_) }
            )
        };
        running.until(TIMEOUT, kept).await;
        assert_eq!(running.limit(), 10);
        server.start_again();
        let back = Source::Document { version: 1 };
        running.until(TIMEOUT, |running| running.relay.source() == back).await;
    });
}
