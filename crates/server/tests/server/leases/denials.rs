//! Denials that are repeated without asking Redis.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_testkit::{Redis, require};
use serde_json::json;
use tokio::time::Instant;

use super::{Connection, calls, metric, start};
use crate::{
    harness::{CHECK, Server},
    replicas::until,
};

const CONNECTIONS: u64 = 8;
const CHECKS: u64 = 500;

/// Checks a user from several connections at once; every answer is a denial for `seconds` or more.
async fn hammer(server: &Server, user: &str, seconds: u64) {
    let load = async || {
        let mut connection = Connection::open(server.address).await;
        for _ in 0..CHECKS {
            let answer = connection.check_user(user).await;
            assert_eq!(answer.json()["allowed"], false, "{answer:?}");
            assert!(answer.header("retry-after").parse::<u64>().unwrap() >= seconds, "{answer:?}");
        }
    };
    join_all((0..CONNECTIONS).map(|_| load())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_subject_costs_few_calls_with_and_without_leases() {
    // The wait of a leased limit is a lower bound: its last units may have been granted.
    for (lease, wait) in [("off", 100), ("50%/100ms", 1)] {
        let redis = require!(Redis::start());
        let keys = [
            ("ratelimit.lease", lease),
            ("ratelimit.default_limit", "20"),
            ("ratelimit.default_window_seconds", "8640000"),
        ];
        let server = start(&redis, &keys).await;
        while server.check_user("u1").await.json()["allowed"] == true {}
        let (before, begun) = (calls(&redis), Instant::now());
        hammer(&server, "u1", wait).await;
        let (calls, took) = (calls(&redis) - before, begun.elapsed());
        // One each 60 ms. If Redis takes longer than that to answer, as on a busy machine, every
        // connection may ask.
        let most = CONNECTIONS * (took.as_millis() as u64 / 60 + 2);
        assert!(calls <= most, "{lease}: {calls} calls in {took:?}");
        let remembered =
            metric(&server, "headgate_lease_decisions_total", r#"source="denial""#).await;
        assert!(remembered + calls >= CONNECTIONS * CHECKS, "{lease}: {remembered}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_windows_that_deny_are_remembered() {
    let redis = require!(Redis::start());
    let server = start(&redis, &[]).await;
    for (limit, window) in [(2, 3_600), (2, 86_400)] {
        let rule = json!({
            "scope": "user", "identifier_pattern": "u1", "limit": limit, "window_seconds": window,
            "algorithm": "sliding_window",
        });
        server.create_rule(&rule).await;
    }
    while server.check_user("u1").await.json()["allowed"] == true {}
    // Some of these are remembered, if a machine is not so busy that each takes longer than that:
    // both windows deny, and the longer wait counts.
    let mut connection = Connection::open(server.address).await;
    let (mut remembered, begun) = (0, Instant::now());
    for checks in 1.. {
        let answer = connection.check_user("u1").await;
        let wait = answer.header("retry-after").parse::<u64>().unwrap();
        assert!((80_000..=86_400).contains(&wait), "{answer:?}");
        remembered += usize::from(answer.header("x-ratelimit-leased") == "true");
        if checks >= 100 && remembered > 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "none of {checks} was remembered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_ends_a_remembered_denial_here_at_once_and_elsewhere_soon() {
    let redis = require!(Redis::start());
    let keys = [("ratelimit.default_limit", "5"), ("ratelimit.default_window_seconds", "8640000")];
    let servers = [start(&redis, &keys).await, start(&redis, &keys).await];
    for server in &servers {
        while server.check_user("u1").await.json()["allowed"] == true {}
    }
    let body = json!({"scope": "user", "identifier": "u1", "reason": "a test"}).to_string();
    let reset = servers[0].admin("POST", "/api/v1/ratelimit/reset", &body).await;
    assert_eq!(reset.status, 200, "{reset:?}");
    assert_eq!(servers[0].check_user("u1").await.json()["allowed"], true);
    until(Duration::from_secs(30), async || {
        let body = json!({"scope": "user", "identifier": "u1"}).to_string();
        servers[1].post(CHECK, &body).await.json()["allowed"] == true
    })
    .await;
}
