//! Several servers on one PostgreSQL and one Redis, before, during and after outages.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_testkit::{Postgres, Redis, require};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{RULES, Server};

const FOREVER: i64 = 8_640_000;

fn rule(pattern: &str, limit: i64) -> Value {
    json!({"scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": FOREVER})
}

/// Polls until the condition holds.
pub(crate) async fn until(patience: Duration, fits: impl AsyncFn() -> bool) {
    let waiting = async {
        while !fits().await {
            // Another process changes it in its own time.
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(patience, waiting).await.expect("in time");
}

async fn limit_of(server: &Server, identifier: &str) -> u64 {
    let body = json!({"scope": "user", "identifier": identifier, "dry_run": true}).to_string();
    server.post(crate::harness::CHECK, &body).await.json()["limit"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_applies_on_all_replicas() {
    let (postgres, redis) = (require!(Postgres::shared()), require!(Redis::start()));
    let url = redis.url();
    let keys = [
        ("database.url", postgres.url()),
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "30000"),
        // Only the notification can be faster than an hour.
        ("ratelimit.refresh_interval_seconds", "3600"),
    ];
    let (one, other) = (Server::start(&keys).await, Server::start(&keys).await);
    for server in [&one, &other] {
        until(Duration::from_secs(120), async || {
            server.get("/readyz").await.text.contains(r#""status":"ready""#)
        })
        .await;
    }
    let id = one.create_rule(&rule("u1", 50)).await;
    until(Duration::from_secs(120), async || limit_of(&other, "u1").await == 50).await;
    let boost = json!({"rule_id": id, "subject": {"user": "u1"}, "limit": 500}).to_string();
    let set = one.admin("PUT", "/api/v1/ratelimit/overrides", &boost).await;
    assert_eq!(set.status, 201, "{}", set.text);
    assert_eq!(limit_of(&one, "u1").await, 500);
    until(Duration::from_secs(120), async || limit_of(&other, "u1").await == 500).await;
    let path = format!("/api/v1/ratelimit/overrides/{}", set.json()["id"].as_str().unwrap());
    assert_eq!(one.admin("DELETE", &path, "").await.status, 204);
    until(Duration::from_secs(120), async || limit_of(&other, "u1").await == 50).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_admit_exactly_the_limit_and_reload_each_others_rules() {
    let (postgres, redis) = (require!(Postgres::shared()), require!(Redis::start()));
    let url = redis.url();
    let keys = [
        ("database.url", postgres.url()),
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "30000"),
        // Only the notification can be faster than an hour.
        ("ratelimit.refresh_interval_seconds", "3600"),
    ];
    let (one, other) = (Server::start(&keys).await, Server::start(&keys).await);
    for server in [&one, &other] {
        until(Duration::from_secs(120), async || {
            server.get("/readyz").await.text.contains(r#""status":"ready""#)
        })
        .await;
    }

    one.create_rule(&rule("u1", 50)).await;
    until(Duration::from_secs(120), async || limit_of(&other, "u1").await == 50).await;

    let replies = join_all((0..400).map(|i| [&one, &other][i % 2].check_user("u1"))).await;
    let admitted = replies.iter().filter(|reply| reply.json()["allowed"] == true);
    let admitted: Vec<&str> = admitted.map(|reply| &*reply.text).collect();
    // An answer says if Redis did not decide it.
    assert_eq!(admitted.len(), 50, "{admitted:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_notifications_a_rule_arrives_with_the_next_poll() {
    let data = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", data.path().join("shared.db").display());
    // SQLite has no notifications.
    let keys = [("database.url", url.as_str()), ("ratelimit.refresh_interval_seconds", "1")];
    let (one, other) = (Server::start(&keys).await, Server::start(&keys).await);
    one.create_rule(&rule("u1", 5)).await;
    until(Duration::from_secs(120), async || limit_of(&other, "u1").await == 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_notification_delays_a_rule_by_one_poll() {
    let postgres = require!(Postgres::shared());
    let keys = [("database.url", postgres.url()), ("ratelimit.refresh_interval_seconds", "1")];
    let servers = [Server::start(&keys).await, Server::start(&keys).await];
    servers[0].create_rule(&rule("u1", 5)).await;
    until(Duration::from_secs(120), async || limit_of(&servers[1], "u1").await == 5).await;
    // Everything that a server writes, except the notification.
    postgres.psql(
        "BEGIN;
         UPDATE headgate.revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules';
         UPDATE ratelimit.rate_limit_rules SET limit_count = 6;
         COMMIT",
    );
    for server in &servers {
        until(Duration::from_secs(120), async || limit_of(server, "u1").await == 6).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_separate_password_applies_only_to_urls_without_one() {
    let postgres = require!(Postgres::builder().password("hunter2").start());
    let complete = postgres.url();
    let incomplete = complete.replace(":hunter2@", "@");
    assert_ne!(complete, incomplete);
    for (url, password) in [(&complete, ""), (&complete, "another"), (&incomplete, "hunter2")] {
        let keys = [("database.url", url.as_str()), ("database.password", password)];
        let server = Server::start(&keys).await;
        let readiness = server.get("/readyz").await.json();
        assert_eq!(readiness["checks"]["database"], "ok", "{password}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_postgres_checks_continue_and_writes_fail() {
    let postgres = require!(Postgres::start());
    let url = postgres.url();
    let keys = [
        ("database.url", url.as_str()),
        ("database.connect_timeout_seconds", "5"),
        ("ratelimit.refresh_interval_seconds", "1"),
    ];
    let server = Server::start(&keys).await;
    server.create_rule(&rule("u1", 5)).await;
    postgres.stop();

    let readiness = async || server.get("/readyz").await.json();
    until(Duration::from_secs(120), async || readiness().await["status"] == "degraded").await;
    assert!(readiness().await["checks"]["database"].as_str().unwrap().starts_with("error: "));
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.check_user("u1").await.json()["limit"], 5);
    let refused = server.admin("POST", RULES, &rule("u2", 5).to_string()).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.json()["error"]["code"], "SYS_RATELIMIT_DATABASE_UNAVAILABLE");
    // Policies may have been read before the rules, whose error this is.
    let down = r#"headgate_database_up{service="headgate"} 0"#;
    let is_reported = async || server.get("/metrics").await.text.contains(down);
    until(Duration::from_secs(120), is_reported).await;

    postgres.start_again();
    until(Duration::from_secs(120), async || readiness().await["status"] == "ready").await;
    server.create_rule(&rule("u2", 5)).await;
    assert_eq!(limit_of(&server, "u1").await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn started_with_both_down_it_serves_and_recovers() {
    let (postgres, redis) = (require!(Postgres::start()), require!(Redis::start()));
    let (database, store) = (postgres.url(), redis.url());
    postgres.stop();
    redis.kill();
    let keys = [
        ("database.url", database.as_str()),
        ("database.connect_timeout_seconds", "5"),
        ("redis.url", store.as_str()),
        ("redis.timeout_ms", "30000"),
        ("ratelimit.refresh_interval_seconds", "1"),
    ];
    let server = Server::start(&keys).await;
    let body = server.check_user("u1").await.json();
    assert_eq!(body["reason"], "redis unavailable, fail-open");
    assert_eq!(server.get("/readyz").await.json()["status"], "degraded");

    postgres.start_again();
    redis.restart();
    let ready = async || server.get("/readyz").await.json()["status"] == "ready";
    until(Duration::from_secs(120), ready).await;
    server.create_rule(&rule("u1", 5)).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 4);
}
