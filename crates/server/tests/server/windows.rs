//! Bounds of windows per pattern, and of checks per batch.

use std::time::Duration;

use headgate_testkit::{Postgres, Redis, RedisCluster, require};
use serde_json::{Value, json};

use crate::{
    grpc::client::{CreateRuleRequest, UpdateRuleRequest, assert_invalid, by, connect, rule_of},
    harness::{RULES, Server},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

/// A busy machine is not an outage.
const PATIENT: (&str, &str) = ("redis.timeout_ms", "30000");

const CROWDED: &str = "user:* may have at most 8 windows; delete one of its rules first";

fn rule(pattern: &str, limit: i64, window: i64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": window,
    })
}

async fn stack(server: &Server, windows: i64) {
    for window in 0..windows {
        server.create_rule(&rule("*", 3 + window, FOREVER + window)).await;
    }
}

/// Checks a batch of 100 subjects as often as the strictest window admits, and once more.
async fn a_hundred_subjects_are_admitted_then_denied(server: &Server) {
    let checks: Vec<Value> =
        (0..100).map(|i| json!({"scope": "user", "identifier": format!("u{i}")})).collect();
    let body = json!({"checks": checks}).to_string();
    let ask = async || server.post("/api/v1/ratelimit/check/batch", &body).await;
    for left in [2, 1, 0] {
        let reply = ask().await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let answer = reply.json();
        let results = answer["results"].as_array().unwrap();
        assert_eq!((&answer["allowed"], results.len()), (&json!(true), 100));
        assert!(results.iter().all(|it| it["remaining"] == left && it["reason"] == ""), "{answer}");
    }
    let denied = ask().await.json();
    assert_eq!((&denied["allowed"], &denied["results"][99]["limit"]), (&json!(false), &json!(3)));
}

async fn ready(server: &Server) {
    let ready = async {
        while !server.get("/readyz").await.text.contains(r#""status":"ready""#) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), ready).await.expect("a store that is there");
}

#[tokio::test]
async fn a_batch_of_a_hundred_checks_every_window_of_each_subject() {
    for windows in [2, 8] {
        let server = Server::start(&[]).await;
        stack(&server, windows).await;
        a_hundred_subjects_are_admitted_then_denied(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_hundred_checks_every_window_of_each_subject_on_redis() {
    for windows in [2, 8] {
        let redis = require!(Redis::start());
        let server = Server::start(&[("redis.url", redis.url().as_str()), PATIENT]).await;
        ready(&server).await;
        stack(&server, windows).await;
        a_hundred_subjects_are_admitted_then_denied(&server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_a_hundred_checks_every_window_of_each_subject_on_a_cluster() {
    let cluster = require!(RedisCluster::start(3, 0));
    let urls = cluster.urls().join(",");
    let server = Server::start(&[("redis.urls", urls.as_str()), PATIENT]).await;
    ready(&server).await;
    stack(&server, 2).await;
    a_hundred_subjects_are_admitted_then_denied(&server).await;
}

#[tokio::test]
async fn a_ninth_window_is_rejected_on_every_surface() {
    let server = Server::start(&[]).await;
    stack(&server, 8).await;
    let crowded = [("window_seconds".to_owned(), CROWDED.to_owned())];
    let ninth = rule("*", 1, 60);
    assert_eq!(server.admin("POST", RULES, &ninth.to_string()).await.details(), crowded);
    let other = server.create_rule(&rule("u1", 1, 60)).await;
    let path = format!("{RULES}/{other}");
    assert_eq!(server.admin("PUT", &path, &ninth.to_string()).await.details(), crowded);
    for dry_run in [true, false] {
        let list = json!({"rules": [rule("u2", 1, 60), ninth], "dry_run": dry_run}).to_string();
        let reported = server.admin("PUT", RULES, &list).await.details();
        assert_eq!(reported, [("rules[1].window_seconds".to_owned(), CROWDED.to_owned())]);
    }

    let mut client = connect(server.grpc_address).await;
    let token = server.admin_token.as_deref().unwrap();
    let create = CreateRuleRequest { window_secs: 60, ..rule_of("user:*") };
    let refused = client.create_rule(by(token, create)).await.unwrap_err();
    assert_invalid(&refused, &[("window_secs", CROWDED)]);
    let key = "user:*".to_owned();
    let update =
        UpdateRuleRequest { rule_id: other, key, limit: 1, window_secs: 60, ..Default::default() };
    let refused = client.update_rule(by(token, update)).await.unwrap_err();
    assert_invalid(&refused, &[("window_secs", CROWDED)]);

    assert_eq!(server.admin("GET", RULES, "").await.json()["pagination"]["total_count"], 9);
    // Other patterns, and a ninth that replaces one of the eight, are accepted.
    let list: Vec<Value> = (1..=8).map(|window| rule("*", 1, window)).collect();
    let list = json!({"rules": list, "prune": true}).to_string();
    assert_eq!(server.admin("PUT", RULES, &list).await.status, 200);
    assert_eq!(server.check_user("u1").await.json()["limit"], 1);
}

#[tokio::test]
async fn only_the_shortest_windows_apply_if_the_database_has_more() {
    let postgres = require!(Postgres::shared());
    let keys = [("database.url", postgres.url())];
    let server = Server::start(&keys).await;
    let id = server.create_rule(&rule("*", 1, 60)).await;
    postgres.psql(
        "INSERT INTO ratelimit.rate_limit_rules
         SELECT gen_random_uuid(), name, scope, identifier_pattern, limit_count, 1000 + n,
             algorithm, burst, fail_mode, enabled, created_at, updated_at
         FROM ratelimit.rate_limit_rules, generate_series(1, 200) AS n",
    );
    let server = Server::start(&keys).await;
    let reply = server.check_user("u1").await;
    assert_eq!((reply.status.as_u16(), &reply.json()["limit"]), (200, &json!(1)));
    let asked = |window: u32| json!({"scope": "user", "identifier": "u2", "window": window});
    // An ignored rule decides only where its window is requested.
    let reply = server.post(crate::harness::CHECK, &asked(1008).to_string()).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["allowed"]), (200, &json!(true)));
    assert_eq!(server.check_user("u2").await.json()["allowed"], true, "it was not asked before");
    let reply = server.post(crate::harness::CHECK, &asked(1007).to_string()).await;
    assert_eq!(reply.json()["allowed"], false, "it was");
    // Existing rules can be changed and deleted; none can be added.
    let path = format!("{RULES}/{id}");
    assert_eq!(server.admin("PUT", &path, &rule("*", 2, 60).to_string()).await.status, 200);
    assert_eq!(server.admin("POST", RULES, &rule("*", 1, 61).to_string()).await.details().len(), 1);
    assert_eq!(server.admin("DELETE", &path, "").await.status, 204);
}
