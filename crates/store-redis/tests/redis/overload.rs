//! A process that is slower than Redis: waiting in the process is not a timeout of Redis, and
//! excess calls are shed at once.

use std::{thread, time::Duration};

use futures_util::future::join_all;
use headgate::{Batch, Check, CheckMode, Cost, Key, LeaseId, Outcomes, Store, StoreError, Verb};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, timeout},
};

use crate::support::{TEST_TIMEOUT, acquire, acquire_eventually, apply, patient, per_minute};

/// Timeout of calls to a Redis that does not reply.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A single-threaded runtime, which can be stalled as a whole.
fn one_thread() -> runtime::Runtime {
    runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn config(redis: &Redis) -> RedisConfig {
    patient(RedisConfig::from_url(&redis.url()).unwrap())
}

#[test]
fn a_stalled_process_does_not_time_out_calls_with_a_reply() {
    let redis = require!(Redis::start());
    // Stalled before the commands are written, while they are in flight, and at every point
    // between. By a thread each, because a stall takes long.
    thread::scope(|scope| {
        for polls_before in 0..8 {
            let config = config(&redis);
            let run = move || one_thread().block_on(calls_with_a_stall(config, polls_before));
            scope.spawn(run);
        }
    });
}

async fn calls_with_a_stall(config: RedisConfig, polls_before: usize) {
    // Redis replies sooner, also on a busy machine.
    const TIMEOUT: Duration = Duration::from_secs(5);
    let store = RedisStore::connect(config.timeout(TIMEOUT));
    let limit = per_minute(10_000);
    acquire_eventually(&store, "k", &limit).await;
    let calls = join_all((0..50).map(|_| acquire(&store, "k", &limit)));
    let stall = async {
        for _ in 0..polls_before {
            tokio::task::yield_now().await;
        }
        stall_thread(TIMEOUT + TIMEOUT / 4);
    };
    let (answers, ()) = tokio::join!(calls, stall);
    for answer in answers {
        assert!(answer.is_ok(), "after {polls_before} polls: {answer:?}");
    }
}

#[test]
fn a_silent_redis_is_detected_in_a_busy_process() {
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
            stall_thread(TIMEOUT + TIMEOUT / 4);
        };
        let (answers, ()) = tokio::join!(calls, stall);
        for answer in answers {
            assert!(matches!(answer, Err(StoreError::Timeout(_))), "{answer:?}");
        }
        redis.resume();
    });
}

#[test]
fn the_circuit_breaker_closes_when_late_replies_arrive() {
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
fn excess_calls_are_shed_without_opening_the_circuit_breaker() {
    const BOUND: usize = 8;
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let config = config(&redis).connections(1).timeout(TEST_TIMEOUT).max_in_flight(BOUND);
    let store = RedisStore::connect(config.breaker(1, Duration::from_secs(3600)));
    let store = std::sync::Arc::new(store);
    let limit = per_minute(10_000);
    runtime.block_on(async {
        acquire_eventually(&*store, "k", &limit).await;
        until_idle(&store).await;
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
        assert!(began.elapsed() < TEST_TIMEOUT, "at once, not after {:?}", began.elapsed());
        redis.resume();
        for answer in calls.join_all().await {
            assert!(answer.unwrap()[0].allowed);
        }
        assert!(acquire(&*store, "k", &limit).await.unwrap()[0].allowed, "the breaker is closed");
    });
}

#[test]
fn reads_of_reservations_are_shed_as_checks_are_and_their_ends_are_not() {
    const BOUND: usize = 8;
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let config = config(&redis).connections(1).timeout(TEST_TIMEOUT).max_in_flight(BOUND);
    let store = RedisStore::connect(config.breaker(1, Duration::from_secs(3600)));
    let limit = per_minute(10_000);
    let cancel = async |mode| {
        let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap().with_mode(mode);
        store.apply(Verb::Cancel(LeaseId::from(7)), &Batch::from(check)).await
    };
    runtime.block_on(async {
        acquire_eventually(&store, "k", &limit).await;
        until_idle(&store).await;
        redis.pause();
        // Calls are sent in this order, and none is answered until all of them are.
        let reads = join_all((0..2 * BOUND).map(|_| cancel(CheckMode::Report)));
        let ends = join_all((0..BOUND).map(|_| cancel(CheckMode::Required)));
        let resume = async { redis.resume() };
        let (reads, ends, ()) = tokio::join!(reads, ends, resume);
        let shed = |answers: &[Result<Outcomes, StoreError>]| {
            answers.iter().filter(|it| matches!(it, Err(StoreError::Overloaded))).count()
        };
        assert_eq!((shed(&reads), shed(&ends)), (BOUND, 0), "{reads:?} {ends:?}");
    });
}

#[test]
fn large_batches_are_shed_before_small_calls_and_leave_them_room() {
    const BOUND: usize = 64;
    let redis = require!(Redis::start());
    let runtime = one_thread();
    let _guard = runtime.enter();
    let config = config(&redis).connections(1).timeout(TEST_TIMEOUT).max_in_flight(BOUND);
    let store = RedisStore::connect(config.breaker(1, Duration::from_secs(3600)));
    let limit = per_minute(10_000);
    let names: Vec<String> = (0..2 * BOUND).map(|i| format!("k{i}")).collect();
    let batch = async |checks: usize| {
        let names: Vec<&str> = names[..checks].iter().map(String::as_str).collect();
        apply(&store, Verb::Acquire, &names, &limit).await
    };
    runtime.block_on(async {
        acquire_eventually(&store, "k", &limit).await;
        until_idle(&store).await;
        redis.pause();
        // Calls are sent in this order, and none is answered until all of them are.
        let large = join_all((0..4).map(|_| batch(24)));
        let small = join_all((0..20).map(|_| batch(1)));
        let resume = async { redis.resume() };
        let (large, small, ()) = tokio::join!(large, small, resume);
        let shed = |answers: &[Result<Outcomes, StoreError>]| {
            answers.iter().filter(|it| matches!(it, Err(StoreError::Overloaded))).count()
        };
        assert_eq!((shed(&large), shed(&small)), (2, 4), "{large:?} {small:?}");
        // What was answered and what was shed is no longer in flight, and no batch is too large.
        assert_eq!(batch(2 * BOUND).await.unwrap().len(), 2 * BOUND);
        // One less, because the store may ask for the memory of Redis at any time.
        assert_eq!(shed(&join_all((1..BOUND).map(|_| batch(1))).await), 0);
    });
}

/// Waits until Redis has told its memory, as the store asks once it is connected: nothing else is in
/// flight then.
async fn until_idle(store: &RedisStore) {
    let told = async {
        while store.status().servers[0].memory.is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TEST_TIMEOUT, told).await.expect("Redis tells its memory");
}

#[expect(clippy::disallowed_methods, reason = "a thread that stands still is what is tested")]
fn stall_thread(duration: Duration) {
    thread::sleep(duration);
}
