//! Documents that change while services run.

use std::{sync::Arc, time::Duration};

use headgate::SystemClock;
use headgate_persistence::{Database, DatabaseConfig};
use headgate_service_config::{LoadError, Reloader, ServiceConfigRepository, Source, Watcher};
use headgate_testkit::{Postgres, require};
use sqlx::postgres::PgListener;
use tokio::{task::JoinHandle, time::timeout};

use super::{events, put, relay::RelayDocument};
use crate::support::{Home, PATIENCE, run};

/// So long that nobody waits for it.
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

    /// Waits until the document in force is as `expected`.
    async fn until(&self, patience: Duration, expected: impl Fn(&Self) -> bool) {
        let mut told = self.relay.subscribe();
        let seen = async {
            while !expected(self) {
                told.changed().await.unwrap();
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
fn a_change_is_heard_within_two_seconds_though_polls_are_rare() {
    let home = require!(Home::postgres());
    run(async {
        let database = home.migrated().await;
        let running = Running::start(&database, Duration::from_secs(30));
        let missing = Source::SafeDefaults { problem: LoadError::Missing };
        running.until(PATIENCE, |running| running.relay.source() == missing).await;
        // The listener must be there before anything is told.
        put(&database.service_configs(), events(10), None).await.unwrap();
        running.until(PATIENCE, |running| running.limit() == 10).await;

        let writer = home.open().service_configs();
        for n in [20, 30, 40] {
            put(&writer, events(n), None).await.unwrap();
            running.until(Duration::from_secs(2), |running| running.limit() == n).await;
        }
        assert_eq!(running.relay.source(), Source::Document { version: 4 });
    });
}

#[test]
fn what_is_told_is_the_service_and_its_version() {
    let home = require!(Home::postgres());
    run(async {
        let documents = home.migrated().await.service_configs();
        let mut listener = PgListener::connect(&home.url()).await.unwrap();
        listener.listen("cn_admin_config").await.unwrap();
        for (n, expected) in [(10, "relay:1"), (20, "relay:2")] {
            put(&documents, events(n), None).await.unwrap();
            let told = timeout(PATIENCE, listener.recv()).await.unwrap().unwrap();
            assert_eq!(told.payload(), expected);
        }
    });
}

#[test]
fn what_nobody_told_is_found_by_polling() {
    for home in [Home::sqlite(), require!(Home::postgres())] {
        run(async {
            let database = home.migrated().await;
            let documents = database.service_configs();
            put(&documents, events(10), None).await.unwrap();
            let running = Running::start(&database, Duration::from_millis(100));
            running.until(PATIENCE, |running| running.limit() == 10).await;

            let mut console = home.console().await;
            let sql = "UPDATE service_configs SET version = 2, \
                config_json = '{\"rate_limit\": {\"ws\": {\"events_per_minute\": 77}}}'";
            console.run(sql).await;
            running.until(PATIENCE, |running| running.limit() == 77).await;

            console
                .run("UPDATE service_configs SET version = 3, config_json = '{\"rate_limit\": 1}'")
                .await;
            let broken = |running: &Running| {
                matches!(
                    running.relay.source(),
                    Source::LastGood { version: 2, problem: LoadError::Invalid { version: 3, .. } }
                )
            };
            running.until(PATIENCE, broken).await;
            assert_eq!(running.limit(), 77);
            put(&documents, events(88), Some(3)).await.unwrap();
            running.until(PATIENCE, |running| running.limit() == 88).await;
        });
    }
}

#[test]
fn who_runs_on_what_is_told() {
    let home = require!(Home::postgres());
    run(async {
        let database = home.migrated().await;
        let documents = database.service_configs();
        let running = Running::start(&database, NEVER);
        put(&documents, events(10), None).await.unwrap();
        running.until(PATIENCE, |running| running.limit() == 10).await;
        let told = async {
            loop {
                let states = documents.states().await.unwrap();
                if states.iter().any(|state| state.version == Some(1)) {
                    return states;
                }
                tokio::task::yield_now().await;
            }
        };
        let states = timeout(PATIENCE, told).await.unwrap();
        assert_eq!(states.len(), 1);
        assert_eq!((&*states[0].service, &*states[0].instance), ("relay", "test"));
        assert!(documents.kinds().await.unwrap().get("relay").is_some());
        assert_eq!(states[0].source, "document");
    });
}

#[test]
fn without_the_database_it_starts_on_safe_defaults_and_goes_on_with_the_last_good_document() {
    let server = require!(Postgres::start());
    run(async {
        let config = DatabaseConfig::from_url(&server.url()).unwrap();
        let database = Database::open(&config.connect_timeout(Duration::from_secs(1)));
        database.migrate().await.unwrap();
        put(&database.service_configs(), events(10), None).await.unwrap();
        server.stop();

        let running = Running::start(&database, Duration::from_millis(200));
        let unread = |running: &Running| match running.relay.source() {
            Source::SafeDefaults { problem: LoadError::Unreadable(why) } => {
                why.contains("unavailable")
            }
            _ => false,
        };
        running.until(PATIENCE, unread).await;
        assert_eq!(running.limit(), 30);

        server.start_again();
        running.until(PATIENCE, |running| running.limit() == 10).await;
        server.stop();
        let kept = |running: &Running| {
            matches!(
                running.relay.source(),
                Source::LastGood { version: 1, problem: LoadError::Unreadable(_) }
            )
        };
        running.until(PATIENCE, kept).await;
        assert_eq!(running.limit(), 10);
        server.start_again();
        let back = Source::Document { version: 1 };
        running.until(PATIENCE, |running| running.relay.source() == back).await;
    });
}
