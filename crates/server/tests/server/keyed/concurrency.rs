//! Concurrent requests to servers that share one Redis.

use futures_util::future::join_all;
use headgate_testkit::{Redis, RedisCluster, require};
use tokio::time::Instant;

use super::{ALGORITHMS, backend::Backend};
use crate::harness::Server;

const LIMITS: [(&str, &str); 10] = [
    ("rate_limiter.token_bucket.capacity", "50"),
    ("rate_limiter.token_bucket.refill_rate", "1"),
    ("rate_limiter.leaky_bucket.capacity", "50"),
    ("rate_limiter.leaky_bucket.leak_rate", "1"),
    ("rate_limiter.sliding_window.max_requests", "50"),
    ("rate_limiter.sliding_window.window_size", "8640000"),
    ("rate_limiter.sliding_window_counter.max_requests", "50"),
    ("rate_limiter.sliding_window_counter.window_size", "8640000"),
    ("rate_limiter.fixed_window.max_requests", "50"),
    ("rate_limiter.fixed_window.window_size", "8640000"),
];

/// Sends 200 concurrent requests; returns what was left after each that was admitted.
async fn admitted(servers: &[Server; 2], query: &str) -> Vec<u64> {
    let replies = join_all((0..200).map(|i| servers[i % 2].check_key(query))).await;
    let mut left = Vec::new();
    for reply in &replies {
        assert!([200, 429].contains(&reply.status.as_u16()), "{}", reply.text);
        assert_eq!(reply.header("x-ratelimit-degraded"), "");
        if reply.status == 200 {
            left.push(reply.header("x-ratelimit-remaining").parse().unwrap());
        }
    }
    left.sort_unstable();
    left
}

async fn exactly_the_limit(backend: &Backend) {
    let servers = [backend.serve(&LIMITS).await, backend.serve(&LIMITS).await];
    for algorithm in ALGORITHMS {
        let began = Instant::now();
        let left = admitted(&servers, &format!("algorithm={algorithm}&key=shared")).await;
        if !algorithm.ends_with("BUCKET") {
            // Each unit is handed out once.
            assert!(left.iter().copied().eq(0..50), "{algorithm}: left {left:?}");
            continue;
        }
        let flowed = began.elapsed().as_secs() + 1;
        assert!((50..=50 + flowed).contains(&(left.len() as u64)), "{algorithm}: left {left:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_redis_admit_exactly_the_limit() {
    exactly_the_limit(&Backend::redis(require!(Redis::start()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_one_cluster_admit_exactly_the_limit() {
    exactly_the_limit(&Backend::Cluster(require!(RedisCluster::start(3, 0)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_do_not_share() {
    let backend = Backend::redis(require!(Redis::start()));
    let server = backend.serve(&LIMITS).await;
    let queries: Vec<String> =
        (0..150).map(|i| format!("algorithm=SLIDING_WINDOW&key=user:{}", i % 5)).collect();
    let replies = join_all(queries.iter().map(|query| server.check_key(query))).await;
    assert!(replies.iter().all(|reply| reply.status == 200));
}
