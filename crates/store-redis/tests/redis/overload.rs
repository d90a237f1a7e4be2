//! A process that is slower than Redis: what waits here does not count as Redis's silence, and what
//! is too much is turned away at once.

use std::{thread, time::Duration};

use futures_util::future::join_all;
use headgate::StoreError;
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use tokio::{runtime, task::JoinSet, time::Instant};

use crate::support::{PATIENCE, acquire, acquire_eventually, per_minute};

const TIMEOUT: Duration = Duration::from_millis(100);

/// All of the process in one thread, so that it can be held up as a whole.
fn one_thread() -> runtime::Runtime {
    runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn config(redis: &Redis) -> RedisConfig {
    RedisConfig::from_url(&redis.url()).unwrap()
}

#[test]
fn a_process_that_stands_still_does_not_time_out_calls_that_redis_answered() {
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let store = RedisStore::connect(config(&redis).timeout(TIMEOUT));
    let limit = per_minute(10_000);
    runtime.block_on(async {
        acquire_eventually(&store, "k", &limit).await;
        // Held up before the commands are written, while they are under way, and at every point between.
        for polls_before in 0..8 {
            let calls = join_all((0..50).map(|_| acquire(&store, "k", &limit)));
            let stall = async {
                for _ in 0..polls_before {
                    tokio::task::yield_now().await;
                }
                stall_thread(5 * TIMEOUT);
            };
            let (answers, ()) = tokio::join!(calls, stall);
            for answer in answers {
                assert!(answer.is_ok(), "after {polls_before} polls: {answer:?}");
            }
        }
    });
}

#[test]
fn a_redis_that_is_silent_is_found_out_although_the_process_is_busy() {
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let store = RedisStore::connect(config(&redis).timeout(TIMEOUT));
    let limit = per_minute(10_000);
    runtime.block_on(async {
        acquire_eventually(&store, "k", &limit).await;
        redis.pause();
        let calls = join_all((0..50).map(|_| acquire(&store, "k", &limit)));
        let stall = async {
            tokio::task::yield_now().await;
            stall_thread(2 * TIMEOUT);
        };
        let (answers, ()) = tokio::join!(calls, stall);
        for answer in answers {
            assert!(matches!(answer, Err(StoreError::Timeout(_))), "{answer:?}");
        }
        redis.resume();
    });
}

#[test]
fn a_redis_that_was_slow_for_a_moment_is_asked_again_when_it_answers_and_not_a_pause_later() {
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let config = config(&redis).timeout(TIMEOUT).breaker(1, Duration::from_secs(3600));
    let store = RedisStore::connect(config);
    let limit = per_minute(10_000);
    runtime.block_on(async {
        acquire_eventually(&store, "k", &limit).await;
        redis.pause();
        let late = acquire(&store, "k", &limit).await;
        assert!(matches!(late, Err(StoreError::Timeout(_))), "{late:?}");
        for _ in 0..100 {
            let answer = acquire(&store, "k", &limit).await;
            assert!(matches!(answer, Err(StoreError::BreakerOpen)), "{answer:?}");
        }
        redis.resume();
        acquire_eventually(&store, "k", &limit).await;
    });
}

#[test]
fn calls_beyond_the_bound_are_turned_away_at_once_and_open_no_breaker() {
    const BOUND: usize = 8;
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let config = config(&redis).connections(1).timeout(PATIENCE).max_in_flight(BOUND);
    let store = RedisStore::connect(config.breaker(1, Duration::from_secs(3600)));
    let store = std::sync::Arc::new(store);
    let limit = per_minute(10_000);
    runtime.block_on(async {
        acquire_eventually(&*store, "k", &limit).await;
        redis.pause();
        let mut calls = JoinSet::new();
        for _ in 0..5 * BOUND {
            let (store, limit) = (std::sync::Arc::clone(&store), limit.clone());
            calls.spawn(async move { acquire(&*store, "k", &limit).await });
        }
        let began = Instant::now();
        for _ in 0..4 * BOUND {
            let turned_away = calls.join_next().await.unwrap().unwrap();
            assert!(matches!(turned_away, Err(StoreError::Overloaded)), "{turned_away:?}");
        }
        assert!(began.elapsed() < PATIENCE, "at once, not after {:?}", began.elapsed());
        redis.resume();
        for answer in calls.join_all().await {
            assert!(answer.unwrap()[0].allowed);
        }
        assert!(acquire(&*store, "k", &limit).await.unwrap()[0].allowed, "the breaker is closed");
    });
}

#[expect(clippy::disallowed_methods, reason = "a thread that stands still is what is tested")]
fn stall_thread(duration: Duration) {
    thread::sleep(duration);
}
