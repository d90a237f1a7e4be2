//! A Redis that is up but rejects some calls: out of memory, a forbidden key, read-only.

use std::time::Duration;

use headgate::{Algorithm, Limit, StoreError, Verb};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require, wait_until};
use tokio::runtime::Runtime;

use crate::support::{
    TEST_TIMEOUT, acquire, acquire_eventually, apply, patient, per_day, per_minute, runtime,
};

/// A store whose circuit breaker opens at the first failure, and stays open.
fn fragile_store(runtime: &Runtime, url: &str) -> RedisStore {
    let _guard = runtime.enter();
    let config = patient(RedisConfig::from_url(url).unwrap());
    RedisStore::connect(config.breaker(1, Duration::from_secs(3600)))
}

fn assert_refused<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Refused(_))), "{answer:?}");
}

#[test]
fn a_full_redis_still_decides_existing_keys() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = fragile_store(&runtime, &redis.url());
    let a_year = Duration::from_hours(24 * 366);
    runtime.block_on(async {
        let limits = Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::Calendar);
        let limits: Vec<Limit> = limits.map(|one| Limit::new(one, 20, a_year).unwrap()).collect();
        for (i, limit) in limits.iter().enumerate() {
            acquire(&store, &format!("blocked{i}"), limit).await.unwrap();
            for _ in 0..20 {
                acquire(&store, &format!("blocked{i}"), limit).await.unwrap();
            }
            acquire(&store, &format!("known{i}"), limit).await.unwrap();
        }
        assert_eq!(redis.cli(&["CONFIG", "SET", "maxmemory", "1"]), "OK");
        for (i, limit) in limits.iter().enumerate() {
            let (blocked, known) = (format!("blocked{i}"), format!("known{i}"));
            assert_refused(&apply(&store, Verb::Acquire, &["new", &known], limit).await);
            for taken in 2..=20 {
                let outcome = acquire(&store, &known, limit).await.unwrap()[0];
                assert!(outcome.allowed, "{limit:?}");
                assert_eq!(outcome.remaining, 20 - taken, "{limit:?}");
            }
            for name in [&blocked, &known] {
                assert!(!acquire(&store, name, limit).await.unwrap()[0].allowed, "{limit:?}");
            }
            assert_refused(&acquire(&store, &format!("new{i}"), limit).await);
            let life: i64 = redis.cli(&["PTTL", &known]).parse().unwrap();
            assert!(life > 0, "{life} ms: it still expires");
        }
        assert_eq!(redis.cli(&["CONFIG", "SET", "maxmemory", "0"]), "OK");
        assert!(acquire(&store, "new", &limits[0]).await.unwrap()[0].allowed);
    });
}

#[test]
fn a_forbidden_key_is_an_error_of_that_key_only() {
    let redis = require!(Redis::start());
    redis.cli(&["ACL", "SETUSER", "narrow", "on", ">pass", "+@all", "~mine:*"]);
    let runtime = runtime();
    let url = format!("redis://narrow:pass@127.0.0.1:{}", redis.port());
    let store = fragile_store(&runtime, &url);
    runtime.block_on(async {
        assert!(acquire(&store, "mine:k", &per_minute(5)).await.unwrap()[0].allowed);
        assert_refused(&acquire(&store, "others", &per_minute(5)).await);
        assert!(acquire(&store, "mine:k", &per_minute(5)).await.unwrap()[0].allowed);
    });
}

#[test]
fn a_read_only_redis_still_denies() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = fragile_store(&runtime, &redis.url());
    runtime.block_on(async {
        assert!(acquire(&store, "k", &per_day(1)).await.unwrap()[0].allowed);
        redis.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
        assert!(!acquire(&store, "k", &per_day(1)).await.unwrap()[0].allowed);
        assert_refused(&acquire(&store, "other", &per_day(1)).await);
        assert!(!acquire(&store, "k", &per_day(1)).await.unwrap()[0].allowed);
    });
}

#[test]
fn an_eviction_policy_that_lifts_limits_is_reported() {
    let redis = require!(Redis::builder().args(["--maxmemory-policy", "allkeys-lru"]).start());
    let may_ask = |name: &str, forbidden: &str| {
        redis.cli(&["ACL", "SETUSER", name, "on", ">pass", "+@all", "~*", forbidden]);
        format!("redis://{name}:pass@127.0.0.1:{}", redis.port())
    };
    let runtime = runtime();
    for url in [redis.url(), may_ask("without_info", "-info"), may_ask("without_config", "-config")]
    {
        let store = fragile_store(&runtime, &url);
        runtime.block_on(acquire_eventually(&store, "k", &per_minute(5)));
        let warns = || store.status().eviction().is_some_and(|text| text.contains("allkeys-lru"));
        assert!(wait_until(TEST_TIMEOUT, warns), "{:?}", store.status());
    }
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    let store = fragile_store(&runtime, &redis.url());
    let is_known = || store.status().servers[0].memory.is_some();
    assert!(wait_until(TEST_TIMEOUT, is_known));
    assert_eq!(store.status().eviction(), None);
}
