//! PostgreSQL only: notifications, outages and authentication.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use headgate_persistence::{Database, DatabaseConfig, PostgresParts};
use headgate_ratelimit::{RateLimitRuleRepository, RepositoryError};
use headgate_testkit::{Postgres, require};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use crate::support::{Home, TIMEOUT, create, everything, run, spec};

fn open(url: &str, connect_timeout: Duration) -> Database {
    let config = DatabaseConfig::from_url(url).unwrap();
    Database::open(&config.min_connections(1).connect_timeout(connect_timeout))
}

/// Waits until an impatient pool has connected: a busy machine may take longer than its timeout.
async fn connected(database: &Database) {
    let began = Instant::now();
    while let Err(error) = database.ping().await {
        assert!(began.elapsed() < TIMEOUT, "{error}");
    }
}

/// Listens in a task; returns its notifier once it has begun, and its handle.
async fn listening(database: &Database) -> (Arc<Notify>, tokio::task::JoinHandle<RepositoryError>) {
    let changed = Arc::new(Notify::new());
    let (replica, woken) = (database.clone(), Arc::clone(&changed));
    let listening = tokio::spawn(async move { replica.listen(&woken).await });
    timeout(TIMEOUT, changed.notified()).await.expect("it never began to listen");
    (changed, listening)
}

#[test]
fn writes_notify_other_replicas() {
    let home = require!(Home::postgres());
    run(async {
        let [writer, replica] = [home.migrated().await, home.open()];
        let (changed, listening) = listening(&replica).await;
        for window in 1..=3 {
            create(&writer, spec("u1", window), 0).await;
            timeout(TIMEOUT, changed.notified()).await.expect("nothing was heard");
        }
        // Listeners do not block closing.
        timeout(TIMEOUT, replica.close()).await.unwrap();
        timeout(TIMEOUT, listening).await.unwrap().unwrap();
    });
}

#[test]
fn listeners_detect_a_stopped_server() {
    let server = require!(Postgres::start());
    run(async {
        let database = open(&server.url(), TIMEOUT);
        database.migrate().await.unwrap();
        let (_, listening_) = listening(&database).await;
        server.stop();
        let error = timeout(TIMEOUT, listening_).await.unwrap().unwrap();
        assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");

        server.start_again();
        let (changed, _) = listening(&database).await;
        create(&database, spec("u1", 60), 0).await;
        timeout(TIMEOUT, changed.notified()).await.unwrap();
    });
}

#[test]
fn connects_lazily_and_reconnects_after_a_crash() {
    let server = require!(Postgres::start());
    server.stop();
    run(async {
        let [impatient, database] =
            [Duration::from_secs(1), TIMEOUT].map(|timeout| open(&server.url(), timeout));
        for error in
            [impatient.migrate().await.map(drop), impatient.ping().await].map(Result::unwrap_err)
        {
            assert_eq!(error.to_string(), "database unavailable: no connection within 1 s");
        }

        server.start_again();
        database.migrate().await.unwrap();
        create(&database, spec("u1", 60), 0).await;
        let before = everything(&database).await;
        connected(&impatient).await;

        server.stop();
        let error = impatient.load().await.unwrap_err();
        assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
        server.start_again();
        assert_eq!(everything(&database).await, before);
        connected(&impatient).await;
    });
}

#[test]
fn errors_do_not_contain_the_password() {
    let server = require!(Postgres::builder().password("hunter2").start());
    let parts = PostgresParts {
        host: "127.0.0.1",
        port: server.port(),
        name: server.database(),
        user: server.user(),
        password: Some("hunter2"),
        ssl_mode: "disable",
    };
    run(async {
        let right = [
            DatabaseConfig::from_url(&server.url()).unwrap(),
            DatabaseConfig::from_parts(&parts).unwrap(),
        ];
        for config in right {
            let database = Database::open(&config.clone().connect_timeout(TIMEOUT));
            database.ping().await.unwrap();
            assert!(!format!("{database:?} {config:?}").contains("hunter2"));
        }
        let wrong = PostgresParts { password: Some("hunter3"), ..parts };
        let wrong = DatabaseConfig::from_parts(&wrong).unwrap();
        let database = Database::open(&wrong.connect_timeout(TIMEOUT));
        let error = database.ping().await.unwrap_err();
        assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains("password authentication failed"), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter3"), "{error:?}");
    });
}

#[test]
fn tls_is_optional_by_default_and_can_be_required() {
    let server = require!(Postgres::start());
    run(async {
        let with = |ssl_mode| {
            let parts = PostgresParts {
                host: "127.0.0.1",
                port: server.port(),
                name: server.database(),
                user: server.user(),
                password: None,
                ssl_mode,
            };
            Database::open(&DatabaseConfig::from_parts(&parts).unwrap().connect_timeout(TIMEOUT))
        };
        with("disable").ping().await.unwrap();
        with("prefer").ping().await.unwrap();
        for ssl_mode in ["require", "verify-full"] {
            let error = with(ssl_mode).ping().await.unwrap_err();
            assert!(matches!(error, RepositoryError::Unavailable(_)), "{error}");
            assert!(error.to_string().contains("does not support TLS"), "{error}");
        }
    });
}

#[test]
fn tables_are_in_their_schemas() {
    let database = require!(Postgres::shared());
    run(async {
        let config = DatabaseConfig::from_url(database.url()).unwrap();
        let config = config.schema("my_limits").unwrap().connect_timeout(TIMEOUT);
        let headgate = Database::open(&config);
        headgate.migrate().await.unwrap();
        create(&headgate, spec("u1", 60), 0).await;
    });
    let tables = database.psql(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables
         WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
    );
    let expected = [
        "cn_admin.audit_logs",
        "cn_admin.denylist",
        "cn_admin.service_configs",
        "cn_admin.service_kinds",
        "cn_admin.service_states",
        "my_limits.audit_log",
        "my_limits.headgate_migrations",
        "my_limits.revisions",
        "quota.quota_deliveries",
        "quota.quota_events",
        "quota.quota_increments",
        "quota.quota_policies",
        "quota.quota_policy_deletions",
        "quota.quota_reservations",
        "quota.quota_sinks",
        "quota.quota_usages",
        "ratelimit.rate_limit_override_changes",
        "ratelimit.rate_limit_overrides",
        "ratelimit.rate_limit_rule_changes",
        "ratelimit.rate_limit_rules",
    ];
    assert_eq!(tables.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn existing_schemas_need_no_create_privilege() {
    let server = require!(Postgres::start());
    server.psql(
        "CREATE ROLE humble LOGIN;
         CREATE SCHEMA headgate AUTHORIZATION humble;
         CREATE SCHEMA ratelimit AUTHORIZATION humble;
         CREATE SCHEMA quota AUTHORIZATION humble;
         CREATE SCHEMA cn_admin AUTHORIZATION humble",
    );
    run(async {
        let database = open(&server.url().replace("postgres@", "humble@"), TIMEOUT);
        database.migrate().await.unwrap();
        create(&database, spec("u1", 60), 0).await;
    });
}

/// Polls `future` at most this many times and drops it.
async fn drop_after(polls: usize, future: impl Future) {
    let (mut future, mut polled) = (pin!(future), 0);
    poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Pending if polled < polls => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

#[test]
fn a_dropped_transaction_does_not_stay_on_its_connection() {
    let home = require!(Home::postgres());
    run(async {
        let config = DatabaseConfig::from_url(&home.url()).unwrap();
        let database = Database::open(&config.max_connections(1).connect_timeout(TIMEOUT));
        database.migrate().await.unwrap();
        for polls in 1..=24 {
            // The transaction is read-only: a write that ended up in it would fail.
            drop_after(polls, database.load()).await;
            create(&database, spec(&format!("u{polls}"), 60), 0).await;
        }
        assert_eq!(database.load().await.unwrap().1.len(), 24);
    });
}

#[test]
fn a_new_database_must_have_all_characters() {
    let server = require!(Postgres::start());
    server.psql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let url = format!("{}/latin", server.url().rsplit_once('/').unwrap().0);
    run(async {
        let database = open(&url, TIMEOUT);
        let error = database.migrate().await.unwrap_err().to_string();
        assert!(error.contains("LATIN1") && error.contains("ENCODING 'UTF8'"), "{error}");
        let inspection = database.inspect(&headgate::SystemClock::new()).await.unwrap();
        assert_eq!(inspection.poor_encoding.as_deref(), Some("LATIN1"));
        assert_eq!(inspection.schema, None, "nothing was created");
    });
}
