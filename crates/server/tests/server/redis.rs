//! Counters in Redis, before, during and after an outage.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use crate::harness::{CHECK, Server};

const FOREVER: (&str, &str) = ("ratelimit.default_window_seconds", "8640000");

/// A busy machine is not an outage.
pub(crate) const PATIENT: (&str, &str) = ("redis.timeout_ms", "30000");

/// Polls until the response satisfies the condition.
pub(crate) async fn eventually(server: &Server, path: &str, fits: impl Fn(&str) -> bool) -> String {
    tokio::time::timeout(Duration::from_secs(120), async {
        loop {
            let text = server.get(path).await.text;
            if fits(&text) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("an answer that fits")
}

pub(crate) async fn ready(server: &Server) {
    eventually(server, "/readyz", |text| text.contains(r#""status":"ready""#)).await;
}

fn body(reply: &crate::harness::Reply) -> Value {
    let mut body = reply.json();
    body["reset_at"].take();
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_one_limit() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [("redis.url", url.as_str()), ("ratelimit.default_limit", "50"), FOREVER, PATIENT];
    let servers = [Server::start(&keys).await, Server::start(&keys).await];
    for server in &servers {
        ready(server).await;
    }
    let replies = join_all((0..100).map(|i| servers[i % 2].check_user("u1"))).await;
    let admitted = replies.iter().filter(|reply| reply.json()["allowed"] == true).count();
    assert_eq!(admitted, 50);
    assert_eq!(redis.cli(&["EXISTS", "ratelimit:user:u1:8640000"]), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_has_keys_of_its_own() {
    let redis = require!(Redis::start());
    let url = redis.url();
    // A counter that is full again is deleted, which takes 600 ms in the default window.
    let server = Server::start(&[("redis.url", url.as_str()), FOREVER, PATIENT]).await;
    ready(&server).await;
    for (scope, identifier) in
        [("service", "order-service"), ("user", "u1"), ("endpoint", "/api/v1/orders")]
    {
        let body = json!({"scope": scope, "identifier": identifier}).to_string();
        assert_eq!(server.post(CHECK, &body).await.json()["remaining"], 99);
    }
    let keys = redis.cli(&["KEYS", "ratelimit:*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    let expected = [
        "ratelimit:endpoint:/api/v1/orders:8640000",
        "ratelimit:service:order-service:8640000",
        "ratelimit:user:u1:8640000",
    ];
    assert_eq!(keys, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_can_come_from_a_file() {
    let redis = require!(Redis::builder().password("hunter2").start());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis-password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let url = format!("redis://127.0.0.1:{}", redis.port());
    let keys = [
        ("redis.url", url.as_str()),
        ("redis.password_file", file.to_str().unwrap()),
        FOREVER,
        PATIENT,
    ];
    let server = Server::start(&keys).await;
    ready(&server).await;
    assert_eq!(server.check_user("u1").await.json()["allowed"], true);
    assert_eq!(redis.cli(&["EXISTS", "ratelimit:user:u1:8640000"]), "1");
}

#[tokio::test]
async fn without_redis_each_subject_gets_its_limit_by_default() {
    let keys =
        [("redis.url", "redis://127.0.0.1:1"), ("ratelimit.default_limit", "5"), FOREVER, PATIENT];
    let server = Server::start(&keys).await;
    for _ in 0..5 {
        let reply = server.check_user("u1").await;
        assert_eq!(reply.status, 200);
        let expected = json!({
            "allowed": true, "remaining": 5, "reset_at": null, "limit": 5,
            "reason": "redis unavailable, fail-open",
        });
        assert_eq!(body(&reply), expected);
        assert_eq!(reply.header("retry-after"), "");
    }
    for _ in 0..5 {
        let reply = server.check_user("u1").await;
        assert_eq!(reply.status, 200);
        let expected = json!({
            "allowed": false, "remaining": 0, "reset_at": null, "limit": 5,
            "reason": "rate limit exceeded for user:u1",
        });
        assert_eq!(body(&reply), expected);
        assert!(reply.header("retry-after").parse::<u32>().unwrap() > 1_000_000, "{reply:?}");
    }
    assert_eq!(server.check_user("u2").await.json()["allowed"], true);
    let metrics = server.get("/metrics").await.text;
    for line in [
        r#"headgate_degraded_decisions_total{mode="capped",reason="unavailable",service="headgate"} 11"#,
        r#"headgate_decisions_total{outcome="allowed",service="headgate"} 6"#,
        r#"headgate_store_up{store="redis",service="headgate"} 0"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\nin\n{metrics}");
    }
}

#[tokio::test]
async fn without_redis_fail_closed_denies_all() {
    let server =
        Server::start(&[("redis.url", "redis://127.0.0.1:1"), ("ratelimit.fail_open", "false")])
            .await;
    let reply = server.check_user("u1").await;
    let expected = json!({
        "allowed": false, "remaining": 0, "reset_at": null, "limit": 100,
        "reason": "redis unavailable, fail-closed",
    });
    assert_eq!((reply.status.as_u16(), body(&reply)), (200, expected));
    assert_eq!(reply.header("retry-after"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_reported_and_recovers_by_itself() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), FOREVER, PATIENT]).await;
    ready(&server).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);

    redis.kill();
    let text = eventually(&server, "/readyz", |text| text.contains("degraded")).await;
    let readiness: Value = serde_json::from_str(&text).unwrap();
    assert!(readiness["checks"]["store"].as_str().unwrap().starts_with("error: "), "{readiness}");
    assert_eq!(server.get("/healthz").await.status, 200);
    let reply = server.check_user("u1").await;
    assert_eq!(reply.json()["reason"], "redis unavailable, fail-open");

    redis.restart();
    ready(&server).await;
    assert_eq!(server.check_user("u1").await.json()["reason"], "");
}
