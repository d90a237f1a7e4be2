//! Outages of Redis: decisions stay exact or follow the failure policy.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use futures_util::future::join_all;
use headgate::{
    Batch, Check, Cost, Degraded, FailMode, FailurePolicy, Key, Limit, Outcome, Store, StoreError,
    SystemClock, Verb,
};
use headgate_store_memory::MemoryStore;
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use tokio::time::Instant;

use crate::{
    load::Load,
    support::{
        TEST_TIMEOUT, acquire, acquire_eventually, patient, per_day, per_minute, runtime, store,
    },
};

#[test]
fn flushed_scripts_are_reloaded_under_load() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = Arc::new(store(&runtime, &redis.url()));
    let limit = Limit::fixed_window(500, Duration::from_hours(24 * 366)).unwrap();
    let load = runtime.spawn({
        let store = Arc::clone(&store);
        async move {
            let mut admitted = 0;
            for _ in 0..2_000 {
                admitted += u64::from(acquire(&*store, "k", &limit).await.unwrap()[0].allowed);
            }
            admitted
        }
    });
    while !load.is_finished() {
        redis.cli(&["SCRIPT", "FLUSH"]);
    }
    assert_eq!(runtime.block_on(load).unwrap(), 500);
}

#[test]
fn calls_recover_from_a_restart_under_load() {
    const LIMIT: u64 = 5_000;
    let redis = require!(Redis::start());
    let runtime = runtime();
    let load = Load::start(&runtime, store(&runtime, &redis.url()), &["k"], LIMIT);
    load.until("calls are answered", |told| told.admissions("k") > 200);
    redis.kill();
    load.until("calls fail", |told| !told.errors.is_empty());
    let late = Load::CALLERS;
    let [given, denied] =
        load.so_far(|told| [told.admissions("k") + late, told.denials("k") + late]);
    redis.restart();
    // It restarts empty, so the limit is available once more.
    load.until("calls are answered again", |told| told.admissions("k") > given);
    load.until("the limit is reached again", |told| told.denials("k") > denied);
    let told = load.stop(&runtime);

    // Redis does not persist here: the second server admits the units of the first once more, and
    // no others twice. A call whose reply was lost may have taken a unit without an admission.
    assert_eq!(
        told.given("k", 1).len() + 2 * told.given("k", 2).len(),
        told.admissions("k") as usize
    );
    let again = told.given("k", 2).len() as u64;
    assert!(again <= given, "{again} of {given}");
    assert!(told.admissions("k") <= given + LIMIT, "{given} and {}", told.admissions("k"));
    assert!(told.errors.iter().all(StoreError::is_outage), "{:?}", told.errors);
}

#[test]
fn the_store_can_start_before_redis() {
    let redis = require!(Redis::start());
    redis.kill();
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(async {
        let error = acquire(&store, "k", &per_minute(5)).await.unwrap_err();
        assert!(error.is_outage(), "{error}");
        redis.restart();
        assert!(acquire_eventually(&store, "k", &per_minute(5)).await[0].allowed);
    });
}

#[test]
fn a_hanging_redis_opens_the_circuit_breaker() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let redis = require!(Redis::start());
    let runtime = runtime();
    let _guard = runtime.enter();
    let config = patient(RedisConfig::from_url(&redis.url()).unwrap()).timeout(TIMEOUT);
    let store = RedisStore::connect(config.breaker(3, Duration::from_secs(3600)));
    runtime.block_on(async {
        let limit = per_minute(5);
        acquire_eventually(&store, "k", &limit).await;
        redis.pause();
        let began = Instant::now();
        // At once: a connection that has been silent for three timeouts is closed.
        for answer in join_all((0..3).map(|_| acquire(&store, "k", &limit))).await {
            assert!(matches!(answer, Err(StoreError::Timeout(_))), "{answer:?}");
        }
        let hung = began.elapsed();
        assert!(hung >= TIMEOUT, "{hung:?}");
        let began = Instant::now();
        for _ in 0..1_000 {
            let error = acquire(&store, "k", &limit).await.unwrap_err();
            assert!(matches!(error, StoreError::BreakerOpen), "{error}");
        }
        // None of them waits, which would take 1,000 times as long.
        assert!(began.elapsed() < 50 * TIMEOUT, "{:?} for 1,000 refusals", began.elapsed());
        redis.resume();
    });
}

#[test]
fn every_failure_mode_decides_during_an_outage() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let _guard = runtime.enter();
    let config = patient(RedisConfig::from_url(&redis.url()).unwrap());
    let store = RedisStore::connect(config.breaker(3, Duration::from_millis(20)));
    let replicas = NonZeroU32::new(2).unwrap();
    let store = FailurePolicy::new(store, MemoryStore::default(), replicas, SystemClock::new());
    let limit = per_day(4);
    let ask = async |name: &str, mode| {
        let check = Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        store.apply(Verb::Acquire, &Batch::from(check.with_fail_mode(mode))).await.unwrap()[0]
    };
    let by = |outcome: &Outcome| outcome.degraded.and_then(Degraded::fail_mode);
    runtime.block_on(async {
        assert_eq!(ask("k", FailMode::Open).await.degraded, None);
        redis.kill();
        for _ in 0..20 {
            let open = ask("k", FailMode::Open).await;
            assert!(open.allowed && by(&open) == Some(FailMode::Open), "{open:?}");
            let closed = ask("k", FailMode::Closed).await;
            assert!(!closed.allowed && by(&closed) == Some(FailMode::Closed), "{closed:?}");
        }
        // Two replicas share a limit of four: this one admits two.
        let local = [ask("l", FailMode::Local).await, ask("l", FailMode::Local).await];
        assert!(local.iter().all(|outcome| outcome.allowed), "{local:?}");
        let over = ask("l", FailMode::Local).await;
        assert!(!over.allowed && by(&over) == Some(FailMode::Local), "{over:?}");
        // With `FailMode::Capped`, each admits up to four.
        for _ in 0..4 {
            let capped = ask("c", FailMode::Capped).await;
            assert!(capped.allowed && by(&capped) == Some(FailMode::Capped), "{capped:?}");
        }
        assert!(!ask("c", FailMode::Capped).await.allowed);

        redis.restart();
        let back = async {
            while ask("k", FailMode::Open).await.degraded.is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, back).await.expect("healed");
    });
}

#[test]
fn a_wrong_password_is_an_outage() {
    let redis = require!(Redis::builder().password("open-sesame").start());
    let runtime = runtime();
    let right = store(&runtime, &redis.url());
    let _guard = runtime.enter();
    let wrong = format!("redis://:wrong@127.0.0.1:{}", redis.port());
    let wrong = RedisConfig::from_url(&wrong).unwrap().timeout(Duration::from_millis(100));
    let wrong = RedisStore::connect(wrong);
    runtime.block_on(async {
        assert!(acquire(&right, "k", &per_minute(5)).await.unwrap()[0].allowed);
        assert!(acquire(&wrong, "k", &per_minute(5)).await.unwrap_err().is_outage());
    });
}
