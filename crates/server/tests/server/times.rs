//! Latency metrics of the store and the database.

use std::time::Duration;

use headgate_testkit::{Redis, require};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, Server},
    redis::{PATIENT, ready},
};

/// The value of this series; 0 where there is none.
async fn value(server: &Server, series: &str) -> f64 {
    let text = server.get("/metrics").await.text;
    let found = text.lines().find_map(|line| line.strip_prefix(series));
    found.map_or(0.0, |value| value.trim().parse().unwrap())
}

/// Number of timed calls to Redis, and their total seconds.
pub(crate) async fn calls(server: &Server) -> (f64, f64) {
    let series = |kind| {
        format!(r#"headgate_store_duration_seconds_{kind}{{store="redis",service="headgate"}}"#)
    };
    (value(server, &series("count")).await, value(server, &series("sum")).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_one_call_to_the_store() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), PATIENT]).await;
    ready(&server).await;
    let (before, _) = calls(&server).await;
    let checks: Vec<_> =
        (0..100).map(|i| json!({"scope": "user", "identifier": format!("u{i}")})).collect();
    let body = json!({"checks": checks}).to_string();
    assert_eq!(server.post(&format!("{CHECK}/batch"), &body).await.json()["allowed"], true);
    let (after, took) = calls(&server).await;
    // One for the batch, one for the probe of the metrics, and periodic probes in between: more if
    // the machine is busy. One for each check would be a hundred.
    let made = after - before;
    assert!((2.0..90.0).contains(&made), "{made} calls");
    assert!(took > 0.0, "{took}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_the_open_breaker_skips_are_not_timed() {
    let nowhere = [("redis.url", "redis://127.0.0.1:1")];
    let server = Server::start(&nowhere).await;
    let began = Instant::now();
    for _ in 0..200 {
        server.check_user("u1").await;
    }
    let (timed, took) = calls(&server).await;
    // Five failures open the breaker; then two calls in a second probe the store, and as many
    // health checks. That is few unless the machine takes long.
    let most = 50.0 + 4.0 * began.elapsed().as_secs_f64();
    assert!((5.0..most).contains(&timed), "{timed} in {took} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_time_out_are_timed() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), ("redis.timeout_ms", "300")]).await;
    ready(&server).await;
    redis.pause();
    assert_eq!(server.check_user("u1").await.json()["reason"], "redis unavailable, fail-open");
    redis.resume();
    let (_, took) = calls(&server).await;
    assert!(took >= Duration::from_millis(300).as_secs_f64(), "{took}");
}

async fn statements_are_timed_by_operation(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let count = async |name: &str, table: &str| {
        let labels = format!(r#"query_name="{name}",table="{table}",service="headgate""#);
        value(&server, &format!("db_query_duration_seconds_count{{{labels}}}")).await
    };
    let rule =
        json!({"scope": "user", "identifier_pattern": "u1", "limit": 5, "window_seconds": 60});
    assert!(count("insert", "rate_limit_rules").await < 0.5);
    let commits = count("commit", "").await;
    let id = server.create_rule(&rule).await;
    for (name, table) in
        [("insert", "rate_limit_rules"), ("insert", "audit_log"), ("update", "revisions")]
    {
        assert!((count(name, table).await - 1.0).abs() < 0.1, "{name} {table}");
    }
    assert!(count("select", "rate_limit_rules").await > 0.5);
    assert!(count("commit", "").await >= commits + 1.0);
    let deleted = server.admin("DELETE", &format!("/api/v1/ratelimit/rules/{id}"), "").await;
    assert!(deleted.status.is_success(), "{}", deleted.text);
    assert!((count("delete", "rate_limit_rules").await - 1.0).abs() < 0.1);
    // Parameters are not labels.
    assert!(!server.get("/metrics").await.text.contains(&format!("table=\"{id}")));
}

on_both_backends!(statements_are_timed_by_operation);
