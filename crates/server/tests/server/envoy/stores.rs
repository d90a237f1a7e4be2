//! The same on shared stores.

use headgate_testkit::{Redis, RedisCluster, require};

use super::{
    client::{Client, of},
    semantics::every_case,
    start,
};
use crate::redis::{PATIENT, ready};

/// Asserts that Redis runs one script while `ask` is answered. A health check of the server in
/// between peeks at a key of its own, which is not counted.
pub(super) async fn assert_one_script(redis: &Redis, ask: impl AsyncFn()) {
    redis.cli(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    redis.cli(&["SLOWLOG", "RESET"]);
    ask().await;
    let log = redis.cli(&["SLOWLOG", "GET", "100"]);
    let count = |word: &str| log.lines().filter(|line| *line == word).count();
    assert_eq!(count("EVALSHA") + count("EVAL") - count("headgate:probe"), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_decides_as_documented_on_redis_in_one_call() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = start(&[("redis.url", url.as_str()), PATIENT]).await;
    ready(&server).await;
    every_case(&server).await;

    let client = Client::connect(server.grpc_address).await;
    let paths: Vec<String> = (0..20).map(|i| format!("/{i}")).collect();
    let mut descriptors: Vec<_> = paths.iter().map(|path| of(&[("path", path)])).collect();
    descriptors.push(of(&[("service", "x"), ("user", "trial")]));
    descriptors.push(super::client::taking(0, &[("address", "192.0.2.77")]));
    client.ask("edge", &descriptors).await;
    let answer = client.ask("edge", &descriptors).await;
    assert_eq!(answer.each()[..20], [(false, 98); 20]);
    assert_eq!(answer.each()[20..], [(false, 0), (false, 3)]);
    let ask = async || drop(client.ask("edge", &descriptors).await);
    assert_one_script(&redis, ask).await;

    let server = start(&[("redis.url", &url), PATIENT, ("envoy.denied_consumes", "all")]).await;
    ready(&server).await;
    let client = Client::connect(server.grpc_address).await;
    client.ask("edge", &descriptors).await;
    assert_eq!(client.ask("edge", &descriptors).await.each()[..20], [(false, 95); 20]);
    let ask = async || drop(client.ask("edge", &descriptors).await);
    assert_one_script(&redis, ask).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_decides_as_documented_on_redis_cluster() {
    let cluster = require!(RedisCluster::start(3, 0));
    let urls = cluster.urls().join(",");
    let server = start(&[("redis.urls", urls.as_str()), PATIENT]).await;
    ready(&server).await;
    every_case(&server).await;

    // Descriptors on several nodes: one is peeked at, one is in shadow mode, one is used up.
    let client = Client::connect(server.grpc_address).await;
    let paths: Vec<String> = (0..10).map(|i| format!("/{i}")).collect();
    let mut descriptors: Vec<_> = paths.iter().map(|path| of(&[("path", path)])).collect();
    descriptors.push(super::client::taking(0, &[("address", "192.0.2.77")]));
    descriptors.push(of(&[("service", "x"), ("user", "trial")]));
    for (left, trial) in [(99, 0), (98, 0), (97, 0)] {
        let answer = client.ask("edge", &descriptors).await;
        assert!(!answer.is_over());
        assert_eq!(answer.each()[..10], [(false, left); 10]);
        assert_eq!(answer.each()[10..], [(false, 3), (false, trial)]);
    }
    descriptors.push(of(&[("address", "203.0.113.9")]));
    descriptors.push(of(&[("service", "x"), ("user", "paying")]));
    assert!(client.ask("edge", &descriptors).await.is_over());
    descriptors.remove(12);
    for over in [false, false, true, true] {
        let answer = client.ask("edge", &descriptors).await;
        assert_eq!(answer.is_over(), over);
    }
    assert_eq!(client.ask("edge", &descriptors[..10]).await.each()[..10], [(false, 94); 10]);
}
