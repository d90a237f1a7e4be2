//! Nodes that share limits on Redis.

use headgate_testkit::{Redis, require};
use serde_json::json;

use super::harness::{START, Server};

#[tokio::test]
async fn nodes_on_one_redis_share_their_limits() {
    // Its clock stands still, so that nothing is refilled however long the requests take.
    let start = || Redis::builder().fake_clock(START * 1_000_000).start();
    let redis = require!(tokio::task::spawn_blocking(start).await.unwrap());
    let url = redis.url();
    let variables = [
        ("CN_BACKEND", "redis"),
        ("CN_REDIS_URL", url.as_str()),
        // A busy machine is not an outage.
        ("CN_REDIS_TIMEOUT_MS", "30000"),
    ];
    let [one, other] = [Server::with(&variables).await, Server::with(&variables).await];
    for node in [&one, &other] {
        node.configure("user-api", json!({"rate_limit": {"public_per_minute": 4}})).await;
    }
    for node in [&one, &other, &one, &other] {
        node.get_from("198.51.100.1", "/v1/policies/current").await.is(200);
    }
    one.get_from("198.51.100.1", "/v1/policies/current").await.is_limited();
    other.get_from("198.51.100.1", "/v1/policies/current").await.is_limited();
    other.get_from("198.51.100.2", "/v1/policies/current").await.is(200);

    // Without Redis each node goes on with limits of its own, which refill by the machine's clock:
    // by one unit a minute.
    tokio::task::spawn_blocking(move || drop(redis)).await.unwrap();
    one.configure("user-api", json!({"rate_limit": {"public_per_minute": 1}})).await;
    one.get_from("198.51.100.3", "/v1/policies/current").await.is(200);
    one.get_from("198.51.100.3", "/v1/policies/current").await.is_limited();
}
