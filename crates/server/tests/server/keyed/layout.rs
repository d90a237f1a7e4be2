//! Keys in Redis: types, names and TTLs.

use headgate_testkit::{Redis, RedisCluster, require};

use super::{ALGORITHMS, backend::Backend, contract::LIMITS};

/// 2026-02-20T10:00:00Z
const START: u64 = 1_771_581_600_000_000;

async fn check_each(backend: &Backend, keys: &[(&str, &str)]) {
    let server = backend.serve(keys).await;
    for algorithm in ALGORITHMS {
        let reply = server.check_key(&format!("algorithm={algorithm}&key=user:12345")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_types_and_times_to_live_are_those_of_the_document() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let backend = Backend::redis(redis);
    check_each(&backend, &[]).await;
    let mut keys: Vec<String> = backend.cli(&["KEYS", "*"]).lines().map(str::to_owned).collect();
    keys.sort();
    let expected = [
        "rate_limiter:fixed_window:user:12345",
        "rate_limiter:leaky_bucket:user:12345",
        "rate_limiter:sliding_window:user:12345",
        "rate_limiter:sliding_window_counter:user:12345",
        "rate_limiter:token_bucket:user:12345",
    ];
    assert_eq!(keys, expected);

    let bucket = "rate_limiter:token_bucket:user:12345";
    assert_eq!(backend.cli(&["TYPE", bucket]), "hash");
    let fields = backend.cli(&["HMGET", bucket, "tokens", "last_refill"]);
    assert_eq!(fields, format!("99\n{START}"));
    // 100 / 10 + 1
    assert_eq!(backend.cli(&["TTL", bucket]), "11");

    let log = "rate_limiter:sliding_window:user:12345";
    assert_eq!(backend.cli(&["TYPE", log]), "zset");
    let newest = backend.cli(&["ZREVRANGE", log, "0", "0", "WITHSCORES"]);
    assert!(newest.ends_with(&format!("\n{START}")), "{newest}");
    // 60 + 1
    assert_eq!(backend.cli(&["TTL", log]), "61");

    let others =
        [("leaky_bucket", "11"), ("fixed_window", "61"), ("sliding_window_counter", "121")];
    for (algorithm, ttl) in others {
        let key = format!("rate_limiter:{algorithm}:user:12345");
        assert_eq!(backend.cli(&["TTL", &key]), ttl, "{algorithm}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_holds_the_same_keys_each_on_its_node() {
    let backend = Backend::Cluster(require!(RedisCluster::start(3, 0)));
    // By default, some are gone after eleven seconds.
    check_each(&backend, &LIMITS).await;
    for algorithm in ALGORITHMS {
        let key = format!("rate_limiter:{}:user:12345", algorithm.to_lowercase());
        let kind = if algorithm == "SLIDING_WINDOW" { "zset" } else { "hash" };
        assert_eq!(backend.cli(&["TYPE", &key]), kind);
        let left: i64 = backend.cli(&["PTTL", &key]).parse().unwrap();
        assert!(left > 0, "{key} lives for ever: {left}");
    }
}
