//! The same on shared stores.

use headgate_testkit::{Redis, RedisCluster, require};

use super::{
    client::{Client, of},
    semantics::every_case,
    start,
};

/// A busy machine is not an outage.
const PATIENT: (&str, &str) = ("redis.timeout_ms", "30000");

/// Number of scripts that Redis has run.
fn scripts(redis: &Redis) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let calls = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
        line.split(',').next()?.parse::<u64>().ok()
    };
    calls("cmdstat_evalsha:calls=").unwrap_or(0) + calls("cmdstat_eval:calls=").unwrap_or(0)
}

/// The smallest number of scripts that Redis runs during a call, of three. A health check of the server
/// in between runs another one.
async fn fewest_scripts(redis: &Redis, ask: impl AsyncFn()) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..3 {
        let before = scripts(redis);
        ask().await;
        fewest = fewest.min(scripts(redis) - before);
    }
    fewest
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_decides_as_documented_on_redis_in_one_call() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = start(&[("redis.url", url.as_str()), PATIENT]).await;
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
    assert_eq!(fewest_scripts(&redis, ask).await, 1);

    let server = start(&[("redis.url", &url), PATIENT, ("envoy.denied_consumes", "all")]).await;
    let client = Client::connect(server.grpc_address).await;
    client.ask("edge", &descriptors).await;
    assert_eq!(client.ask("edge", &descriptors).await.each()[..20], [(false, 93); 20]);
    let ask = async || drop(client.ask("edge", &descriptors).await);
    assert_eq!(fewest_scripts(&redis, ask).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_case_decides_as_documented_on_redis_cluster() {
    let cluster = require!(RedisCluster::start(3, 0));
    let urls = cluster.urls().join(",");
    let server = start(&[("redis.urls", urls.as_str()), PATIENT]).await;
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
