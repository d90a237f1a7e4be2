//! Responses of check, remaining and reset, for every algorithm on every store.

use std::time::SystemTime;

use headgate_testkit::{Redis, RedisCluster, require};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ALGORITHMS, backend::Backend, counted, number};
use crate::harness::{Reply, Server};

/// Large compared to the units that refill during a test.
const MOST: u64 = 100_000;

pub(super) const LIMITS: [(&str, &str); 10] = [
    ("rate_limiter.token_bucket.capacity", "100000"),
    ("rate_limiter.token_bucket.refill_rate", "1"),
    ("rate_limiter.leaky_bucket.capacity", "100000"),
    ("rate_limiter.leaky_bucket.leak_rate", "1"),
    ("rate_limiter.sliding_window.max_requests", "100000"),
    ("rate_limiter.sliding_window.window_size", "8640000"),
    ("rate_limiter.sliding_window_counter.max_requests", "100000"),
    ("rate_limiter.sliding_window_counter.window_size", "8640000"),
    ("rate_limiter.fixed_window.max_requests", "100000"),
    ("rate_limiter.fixed_window.window_size", "8640000"),
];

/// A key and the start of its test.
struct Subject<'s> {
    server: &'s Server,
    algorithm: &'static str,
    began: Instant,
}

impl Subject<'_> {
    async fn check(&self, more: &str) -> Reply {
        let algorithm = self.algorithm;
        self.server.check_key(&format!("algorithm={algorithm}&key=user:123{more}")).await
    }

    async fn remaining(&self) -> Reply {
        self.server.remaining(&format!("algorithm={}&key=user:123", self.algorithm)).await
    }

    /// Asserts the remaining units, allowing for refill since the start.
    fn assert_left(&self, left: u64, expected: u64) {
        let flows = self.algorithm.ends_with("BUCKET");
        let flowed = if flows { self.began.elapsed().as_secs() + 1 } else { 0 };
        let algorithm = self.algorithm;
        assert!((expected..=expected + flowed).contains(&left), "{algorithm}: {left}, {expected}");
    }
}

async fn contract(backend: &Backend) {
    let server = backend.serve(&LIMITS).await;
    for algorithm in ALGORITHMS {
        let subject = Subject { server: &server, algorithm, began: Instant::now() };
        a_peek_takes_nothing(&subject).await;
        a_check_takes_its_permits(&subject).await;
        more_than_remaining_is_denied(&subject).await;
        other_subjects_are_unaffected_and_a_reset_restores_the_limit(&subject).await;
    }
}

async fn a_peek_takes_nothing(subject: &Subject<'_>) {
    for _ in 0..3 {
        let reply = subject.remaining().await;
        let expected =
            json!({"key": "user:123", "remaining": MOST, "algorithm": subject.algorithm});
        assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
        assert_eq!(counted(&reply, "x-ratelimit-limit"), MOST);
        assert_eq!(counted(&reply, "x-ratelimit-remaining"), MOST);
        assert_eq!(reply.header("retry-after"), "");
    }
}

async fn a_check_takes_its_permits(subject: &Subject<'_>) {
    let reply = subject.check("").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let mut body = reply.json();
    let reset = body["resetAfterSeconds"].take().as_u64().unwrap();
    let expected = json!({
        "allowed": true,
        "key": "user:123",
        "algorithm": subject.algorithm,
        "remaining": MOST - 1,
        "resetAfterSeconds": null,
        "retryAfterSeconds": 0,
        "message": "Request allowed",
    });
    assert_eq!(body, expected);
    assert!((1..=2 * 8_640_000).contains(&reset), "{reset}");
    assert_eq!(counted(&reply, "x-ratelimit-remaining"), MOST - 1);
    assert_eq!(reply.header("retry-after"), "");
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(reply.header("x-ratelimit-degraded"), "");
    assert!(!reply.header("x-request-id").is_empty());
    // The same moment, as a Unix time.
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let reset_at = counted(&reply, "x-ratelimit-reset");
    assert!(reset_at.abs_diff(now + reset) <= 60, "{reset_at}, {now} + {reset}");
    ietf_fields(subject, &reply);

    let reply = subject.check("&permits=40000").await;
    subject.assert_left(number(&reply, "remaining"), MOST - 40_001);
    let reply = subject.remaining().await;
    subject.assert_left(number(&reply, "remaining"), MOST - 40_001);
}

fn ietf_fields(subject: &Subject<'_>, reply: &Reply) {
    let name = subject.algorithm.to_lowercase();
    let window = if subject.algorithm.ends_with("BUCKET") { MOST } else { 8_640_000 };
    assert_eq!(reply.header("ratelimit-policy"), format!("\"{name}\";q={MOST};w={window}"));
    // One unit was taken: its refill restores the whole limit.
    let (left, reset) = (MOST - 1, number(reply, "resetAfterSeconds"));
    assert_eq!(reply.header("ratelimit"), format!("\"{name}\";r={left};t={reset}"));
}

async fn more_than_remaining_is_denied(subject: &Subject<'_>) {
    let reply = subject.check("&permits=90000").await;
    assert_eq!(reply.status, 429, "{}", reply.text);
    let body = reply.json();
    assert_eq!(body["allowed"], Value::Bool(false));
    assert_eq!(body["message"], "Rate limit exceeded");
    assert_eq!(body.as_object().unwrap().len(), 7, "{body}");
    // It took nothing.
    subject.assert_left(number(&reply, "remaining"), MOST - 40_001);
    let retry = number(&reply, "retryAfterSeconds");
    assert_eq!(counted(&reply, "retry-after"), retry);
    if subject.algorithm.ends_with("BUCKET") {
        // 30,001 units are missing, and one refills per second.
        let waited = subject.began.elapsed().as_secs() + 1;
        assert!((30_001 - waited..=30_001).contains(&retry), "{retry}");
    } else {
        assert!((1..=2 * 8_640_000).contains(&retry), "{retry}");
    }
}

async fn other_subjects_are_unaffected_and_a_reset_restores_the_limit(subject: &Subject<'_>) {
    let (server, algorithm) = (subject.server, subject.algorithm);
    let other = server.remaining(&format!("algorithm={algorithm}&key=user:124")).await;
    assert_eq!(number(&other, "remaining"), MOST);

    let reply = server.reset_key(&format!("algorithm={algorithm}&key=user:123")).await;
    let expected = json!({"status": "reset", "key": "user:123"});
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(number(&subject.remaining().await, "remaining"), MOST);
}

#[tokio::test]
async fn on_memory() {
    contract(&Backend::Memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis() {
    contract(&Backend::redis(require!(Redis::start()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_redis_cluster() {
    contract(&Backend::Cluster(require!(RedisCluster::start(3, 0)))).await;
}

#[tokio::test]
async fn a_post_decides_like_a_get() {
    let server = Server::start(&[]).await;
    let path = "check?algorithm=SLIDING_WINDOW&key=u1&permits=10";
    let reply = server.ask("POST", path).await;
    assert_eq!((reply.status.as_u16(), number(&reply, "remaining")), (200, 90));
    let reply = server.ask("GET", path).await;
    assert_eq!((reply.status.as_u16(), number(&reply, "remaining")), (200, 80));
}

#[tokio::test]
async fn the_configured_algorithm_is_the_default() {
    let server = Server::start(&[]).await;
    assert_eq!(server.check_key("key=u1").await.json()["algorithm"], "TOKEN_BUCKET");
    let other = Server::start(&[("rate_limiter.algorithm", "leaky_bucket")]).await;
    assert_eq!(other.check_key("key=u1").await.json()["algorithm"], "LEAKY_BUCKET");
}

#[tokio::test]
async fn algorithm_names_are_case_insensitive() {
    let server = Server::start(&[]).await;
    for name in ["sliding_window", "Sliding_Window_Log", "SLIDING_WINDOW_LOG"] {
        let body = server.check_key(&format!("algorithm={name}&key=u1")).await.json();
        assert_eq!(body["algorithm"], "SLIDING_WINDOW", "{name}");
    }
    // All were counted for one key.
    let left = server.remaining("algorithm=SLIDING_WINDOW&key=u1").await;
    assert_eq!(number(&left, "remaining"), 97);
}

#[tokio::test]
async fn the_defaults_are_those_of_the_document() {
    let server = Server::start(&[]).await;
    for algorithm in ALGORITHMS {
        let reply = server.check_key(&format!("algorithm={algorithm}&key=u1")).await;
        assert_eq!(number(&reply, "remaining"), 99, "{algorithm}");
        let window = if algorithm.ends_with("BUCKET") { "q=100;w=10" } else { "q=100;w=60" };
        assert!(reply.header("ratelimit-policy").ends_with(window), "{:?}", reply.headers);
    }
}
