//! A Redis that is partly down, evicts counters, or has too many new subjects.

use futures_util::future::join_all;
use headgate_testkit::{Redis, RedisCluster, require};
use serde_json::{Value, json};

use crate::{
    harness::Server,
    redis::{PATIENT, eventually, ready},
};

const FOREVER: (&str, &str) = ("ratelimit.default_window_seconds", "8640000");

fn has(metrics: &str, line: &str) -> bool {
    metrics.lines().any(|found| found.starts_with(line))
}

/// The user of every third of the slots: `ratelimit:user:{name}:8640000` is at node 0, 1 and 2.
fn user_at(cluster: &RedisCluster, node: usize) -> String {
    let slot = |name: &str| {
        let key = format!("ratelimit:user:{name}:8640000");
        let slot = cluster.node(1).cli(&["CLUSTER", "KEYSLOT", &key]);
        slot.parse::<usize>().unwrap()
    };
    let is_there = |name: &String| slot(name) * 3 / 16_384 == node;
    (0..100).map(|i| format!("u{i}")).find(is_there).expect("one of a hundred is there")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_master_degrades_its_own_slots_alone_and_is_named() {
    let cluster = require!(RedisCluster::start_partial(3));
    let urls = cluster.urls().join(",");
    let keys = [("redis.urls", urls.as_str()), ("ratelimit.default_limit", "50"), FOREVER, PATIENT];
    let server = Server::start(&keys).await;
    ready(&server).await;
    let users = [0, 1, 2].map(|node| user_at(&cluster, node));
    for user in &users {
        assert_eq!(server.check_user(user).await.json()["remaining"], 49);
    }
    cluster.kill_master(0);
    let mut degraded = 0;
    for i in 1..=30 {
        let lost = server.check_user(&users[0]).await.json();
        degraded += u32::from(lost["reason"].as_str().is_some_and(|r| r.starts_with("redis")));
        for user in &users[1..] {
            assert_eq!(server.check_user(user).await.json()["remaining"], 49 - i, "{user}");
        }
    }
    assert_eq!(degraded, 30, "the failure policy answers for the dead node, and for it alone");
    let readiness = eventually(&server, "/readyz", |text| text.contains("degraded")).await;
    let readiness: Value = serde_json::from_str(&readiness).unwrap();
    let store = readiness["checks"]["store"].as_str().unwrap();
    assert!(store.contains("1 of 3") && store.contains("slots 0-5460"), "{store}");
    let metrics = server.get("/metrics").await.text;
    assert!(
        has(&metrics, r#"headgate_redis_servers{state="away",service="headgate"} 1"#),
        "{metrics}"
    );
    assert!(
        has(&metrics, r#"headgate_redis_servers{state="up",service="headgate"} 2"#),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_keeps_blocked_subjects_blocked() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [("redis.url", url.as_str()), ("ratelimit.default_limit", "2"), FOREVER, PATIENT];
    let server = Server::start(&keys).await;
    ready(&server).await;
    for _ in 0..3 {
        server.check_user("blocked").await;
    }
    assert_eq!(server.check_user("known").await.json()["remaining"], 1);
    redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for i in 0..20 {
        // The failure policy decides on new subjects; the breaker stays closed.
        let newcomer = server.check_user(&format!("new{i}")).await.json();
        assert_eq!(newcomer["reason"], "redis unavailable, fail-open", "{newcomer}");
        let blocked = server.check_user("blocked").await.json();
        assert_eq!((&blocked["allowed"], &blocked["limit"]), (&json!(false), &json!(2)));
        assert!(!blocked["reason"].as_str().unwrap().contains("redis"), "{blocked}");
    }
    assert_eq!(server.check_user("known").await.json()["remaining"], 0);
    assert_eq!(server.check_user("known").await.json()["allowed"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_policy_that_drops_counters_is_reported() {
    let redis = require!(Redis::builder().args(["--maxmemory-policy", "allkeys-lru"]).start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), PATIENT]).await;
    let readiness = eventually(&server, "/readyz", |text| text.contains("eviction")).await;
    let readiness: Value = serde_json::from_str(&readiness).unwrap();
    assert_eq!(readiness["status"], "ready");
    let warning = readiness["checks"]["eviction"].as_str().unwrap();
    assert!(warning.starts_with("warning: ") && warning.contains("allkeys-lru"), "{warning}");
    let metrics = server.get("/metrics").await.text;
    assert!(has(&metrics, r#"headgate_redis_evicts_counters{service="headgate"} 1"#), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_subjects_beyond_the_bound_share_counters_and_known_ones_do_not() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [
        ("redis.url", url.as_str()),
        ("redis.max_new_subjects_per_second", "1"),
        ("ratelimit.default_limit", "5"),
        FOREVER,
        PATIENT,
    ];
    let server = Server::start(&keys).await;
    ready(&server).await;
    assert_eq!(server.check_user("regular").await.json()["remaining"], 4);
    // All at once: one after the other, a busy machine may not send more than one in a second.
    let names: Vec<String> = (0..90).map(|i| format!("flood{i}")).collect();
    let flood = join_all(names.iter().map(|name| server.check_user(name))).await;
    assert!(flood.iter().all(|reply| reply.status == 200), "{flood:?}");
    assert_eq!(server.check_user("regular").await.json()["remaining"], 3);
    let metrics = server.get("/metrics").await.text;
    assert!(has(&metrics, "headgate_redis_newcomers_shared_total"), "{metrics}");
    let shared = redis.cli(&["KEYS", "headgate:newcomers:*"]);
    assert!(shared.lines().count() > 1, "{shared}");
}
