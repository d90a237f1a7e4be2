//! Decisions while Redis is down.

use std::time::Duration;

use headgate_testkit::{Redis, require};
use serde_json::json;
use tokio::time::Instant;

use super::{
    ALGORITHMS,
    backend::{Backend, until_up},
    number,
};
use crate::{harness::Server, redis::PATIENT};

const NOWHERE: (&str, &str) = ("redis.url", "redis://127.0.0.1:1");

#[tokio::test]
async fn fail_open_admits_all_and_marks_the_response() {
    let server = Server::start(&[NOWHERE, PATIENT]).await;
    for algorithm in ALGORITHMS {
        let reply = server.check_key(&format!("algorithm={algorithm}&key=user:123")).await;
        let expected = json!({
            "allowed": true,
            "key": "user:123",
            "algorithm": algorithm,
            "remaining": 100,
            "resetAfterSeconds": 0,
            "retryAfterSeconds": 0,
            "message": "Request allowed",
            "degraded": "capped",
        });
        assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
        assert_eq!(reply.header("x-ratelimit-degraded"), "capped");
        let look = server.remaining(&format!("algorithm={algorithm}&key=user:123")).await;
        assert_eq!((look.status.as_u16(), number(&look, "remaining")), (200, 100));
        assert_eq!(look.header("x-ratelimit-degraded"), "capped");
    }
    let metrics = server.get("/metrics").await.text;
    for line in [
        r#"rate_limiter_degraded_total{algorithm="FIXED_WINDOW",application="headgate",reason="unavailable",service="headgate"} 1"#,
        r#"rate_limiter_requests_total{algorithm="FIXED_WINDOW",allowed="true",application="headgate",service="headgate"} 1"#,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\nin\n{metrics}");
    }
}

#[tokio::test]
async fn no_request_beyond_the_limit_is_admitted_unless_configured() {
    let window = ("rate_limiter.fixed_window.window_size", "8640000");
    for (mode, over) in [("capped", 429), ("open", 200)] {
        let keys = [NOWHERE, window, ("rate_limiter.fail_mode", mode)];
        let server = Server::start(&keys).await;
        for _ in 0..2 {
            let reply = server.check_key("algorithm=FIXED_WINDOW&key=u1&permits=50").await;
            assert_eq!(reply.status, 200, "{}", reply.text);
        }
        let reply = server.check_key("algorithm=FIXED_WINDOW&key=u1").await;
        assert_eq!(reply.status, over, "{}", reply.text);
    }
}

#[tokio::test]
async fn fail_closed_denies_all() {
    let server = Server::start(&[NOWHERE, ("rate_limiter.fail_mode", "closed")]).await;
    let reply = server.check_key("key=user:123").await;
    assert_eq!(reply.status, 429, "{}", reply.text);
    assert_eq!(reply.json()["degraded"], "closed");
    assert_eq!(number(&reply, "remaining"), 0);
    assert_eq!(reply.header("retry-after"), "1");
}

#[tokio::test]
async fn each_server_counts_alone_if_so_configured() {
    let keys = [NOWHERE, ("rate_limiter.fail_mode", "local"), ("ratelimit.replicas", "4")];
    let server = Server::start(&keys).await;
    for left in [24, 23, 22] {
        let reply = server.check_key("algorithm=SLIDING_WINDOW&key=user:123").await;
        assert_eq!(reply.json()["degraded"], "local");
        assert_eq!(number(&reply, "remaining"), left);
    }
}

#[tokio::test]
async fn a_reset_with_an_unknown_outcome_is_not_reported_as_done() {
    let server = Server::start(&[NOWHERE]).await;
    let reply = server.reset_key("key=user:123").await;
    assert_eq!(reply.status, 503, "{}", reply.text);
    assert_eq!(reply.json()["error"], "STORE_UNAVAILABLE");
    let log = server.admin("GET", "/api/v1/ratelimit/audit?action=counter.reset", "").await.json();
    assert_eq!(log["entries"][0]["after"], json!({"outcome": "unknown"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_costs_no_time_and_ends_by_itself() {
    let backend = Backend::redis(require!(Redis::start()));
    let server = backend.serve(&[]).await;
    let Backend::Redis(redis) = &backend else { unreachable!() };
    assert_eq!(
        server.check_key("algorithm=SLIDING_WINDOW&key=u1").await.json().get("degraded"),
        None
    );

    redis.kill();
    for _ in 0..50 {
        let asked = Instant::now();
        let reply = server.check_key("algorithm=SLIDING_WINDOW&key=u1").await;
        assert_eq!((reply.status.as_u16(), reply.header("x-ratelimit-degraded")), (200, "capped"));
        // Closed connections do not wait for the timeout, which is 30 seconds here.
        assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    }
    let health = server.get("/actuator/health").await;
    assert_eq!((health.status.as_u16(), &health.json()["status"]), (200, &json!("DEGRADED")));

    redis.restart();
    until_up(&server).await;
    let reply = server.check_key("algorithm=SLIDING_WINDOW&key=u1").await;
    assert_eq!(reply.json().get("degraded"), None);
}
