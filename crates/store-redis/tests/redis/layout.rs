//! What stands in Redis: the layouts that the documents promise, and a time to live on everything.

use std::time::Duration;

use headgate::{Algorithm, Cost, FailMode, LeaseId, Limit, StoreError, Verb};
use headgate_testkit::{Redis, require};

use crate::support::{acquire, apply, per_minute, runtime, store};

#[test]
fn a_token_bucket_is_a_hash_of_tokens_and_last_refill() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(acquire(&store, "ratelimit:user:user-001:60", &per_minute(100))).unwrap();

    let key = "ratelimit:user:user-001:60";
    assert_eq!(redis.cli(&["TYPE", key]), "hash");
    assert_eq!(redis.cli(&["HGET", key, "tokens"]), "99");
    let seconds = redis.cli(&["TIME"]).lines().next().unwrap().parse::<u64>().unwrap();
    let last_refill: u64 = redis.cli(&["HGET", key, "last_refill"]).parse().unwrap();
    assert!(seconds.abs_diff(last_refill / 1_000_000) <= 5, "{last_refill} is not in microseconds");
    let ttl: u64 = redis.cli(&["TTL", key]).parse().unwrap();
    assert!((55..=61).contains(&ttl), "{ttl} s, not the window and a second");
}

#[test]
fn a_sliding_window_is_a_sorted_set_whose_size_does_not_depend_on_costs() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let limit = Limit::sliding_window(10_000, Duration::from_secs(60)).unwrap();
    runtime.block_on(async {
        let key = headgate::Key::new("rate_limiter:sliding_window:heavy").unwrap();
        let check = headgate::Check::new(key, &limit, Cost::new(5_000).unwrap()).unwrap();
        for left in [5_000, 0] {
            let outcome =
                headgate::Store::apply(&store, Verb::Acquire, &check.into()).await.unwrap()[0];
            assert_eq!(outcome.remaining, left);
        }
    });
    let key = "rate_limiter:sliding_window:heavy";
    assert_eq!(redis.cli(&["TYPE", key]), "zset");
    assert_eq!(redis.cli(&["ZCARD", key]), "3", "two requests and the sum");
    let ttl: u64 = redis.cli(&["TTL", key]).parse().unwrap();
    assert!((55..=61).contains(&ttl), "{ttl} s, not the window and a second");
}

#[test]
fn every_key_of_every_algorithm_and_verb_has_a_time_to_live() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(async {
        for algorithm in Algorithm::ALL {
            let limit = match algorithm {
                Algorithm::Calendar => Limit::calendar(9, headgate::algorithm::Period::Day, "UTC"),
                algorithm => Limit::new(algorithm, 9, Duration::from_secs(60)),
            };
            let limit = limit.unwrap();
            let id = LeaseId::from(1);
            let verbs = [
                Verb::Acquire,
                Verb::Reserve { id, lease: Duration::from_secs(9) },
                Verb::Commit(id),
                Verb::Refund,
                Verb::Peek,
            ];
            for n in 1..=verbs.len() {
                let name = format!("ttl:{algorithm}:{n}");
                for verb in &verbs[..n] {
                    assert!(apply(&store, *verb, &[&name], &limit).await.unwrap()[0].allowed);
                }
            }
        }
    });
    let keys = redis.cli(&["KEYS", "*"]);
    assert!(keys.lines().count() >= 24, "{keys}");
    for key in keys.lines() {
        let ttl: i64 = redis.cli(&["PTTL", key]).parse().unwrap();
        assert!(ttl > 0, "{key} lives for ever");
    }
}

/// The time to live is not set on every call. Time is made to pass by moving what Redis has into the past, no
/// further than to the beginning of the step in which the time to live was set, or by a whole step.
#[test]
fn a_bucket_lives_until_it_is_full_again() {
    const FILLS_IN: u64 = 60_000_000;
    const STEP: u64 = FILLS_IN / 2;
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let number = |words: &[&str]| redis.cli(words).parse::<u64>().unwrap();
    for (algorithm, time) in
        [(Algorithm::TokenBucket, "last_refill"), (Algorithm::LeakyBucket, "last_leak")]
    {
        let limit = Limit::new(algorithm, 100, Duration::from_micros(FILLS_IN)).unwrap();
        for (round, costs) in [[1, 98, 1], [1, 20, 79], [60, 39, 1], [40, 1, 1]].iter().enumerate()
        {
            let name = format!("{algorithm}:{round}");
            let take = |cost| {
                let key = headgate::Key::new(&name).unwrap();
                let check = headgate::Check::new(key, &limit, Cost::new(cost).unwrap()).unwrap();
                let batch = check.into();
                let outcomes = headgate::Store::apply(&store, Verb::Acquire, &batch);
                runtime.block_on(outcomes).unwrap()[0]
            };
            assert!(take(costs[0]).allowed);
            let into_step = number(&["HGET", &name, time]) % STEP;
            // A whole step may pass at any time: what was set then is no longer relied on.
            let steps = [(costs[1], into_step / 2), (costs[2], into_step / 2), (40, STEP)];
            for (cost, passed) in steps {
                redis.cli(&["HINCRBY", &name, time, &format!("-{passed}")]);
                let left = number(&["PTTL", &name]) - passed / 1_000;
                redis.cli(&["PEXPIRE", &name, &left.to_string()]);

                let outcome = take(cost);
                assert!(outcome.allowed, "{name}: {outcome:?}");
                let lives = Duration::from_millis(number(&["PTTL", &name]));
                assert!(lives >= outcome.reset_after, "{name}: {lives:?}, {outcome:?}");
            }
        }
    }
}

#[test]
fn a_bucket_whose_limit_became_slower_or_larger_lives_as_long_as_that_takes() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let name = algorithm.name();
        let small = Limit::new(algorithm, 100, Duration::from_secs(10)).unwrap();
        let slow = Limit::new(algorithm, 100, Duration::from_secs(1_000)).unwrap();
        let large = slow.clone().with_burst(1_000).unwrap();
        for (limit, least) in [(small, 10), (slow, 1_000), (large, 10_000)] {
            runtime.block_on(acquire(&store, name, &limit)).unwrap();
            let ttl: u64 = redis.cli(&["TTL", name]).parse().unwrap();
            assert!(ttl >= least, "{name}: {ttl} s of {least} s");
        }
    }
}

#[test]
fn the_largest_batch_is_one_call() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let names: Vec<String> = (0..headgate::Batch::MAX_CHECKS).map(|i| format!("key:{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let outcomes = runtime.block_on(apply(&store, Verb::Acquire, &names, &per_minute(5))).unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.allowed && outcome.remaining == 4));
    assert_eq!(redis.cli(&["DBSIZE"]), headgate::Batch::MAX_CHECKS.to_string());
}

#[test]
fn a_reset_leaves_nothing_behind() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(async {
        acquire(&store, "a", &per_minute(5)).await.unwrap();
        let outcome = apply(&store, Verb::Reset, &["a"], &per_minute(5)).await.unwrap()[0];
        assert_eq!(outcome.remaining, 5);
    });
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
}

#[test]
fn a_value_that_is_not_ours_is_an_error_of_that_key_alone_and_a_reset_clears_it() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    redis.cli(&["SET", "wrong-type", "hello"]);
    redis.cli(&[
        "HSET",
        "wrong-content",
        "tokens",
        "many",
        "last_refill",
        "yesterday",
        "part",
        "x",
        "limit",
        "y",
    ]);
    runtime.block_on(async {
        let limit = per_minute(5);
        for key in ["wrong-type", "wrong-content"] {
            let error = acquire(&store, key, &limit).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt(_)), "{key}: {error}");
            assert!(!error.is_outage());
            assert!(acquire(&store, "healthy", &limit).await.unwrap()[0].allowed);
            // Beside a healthy key in one batch: nothing is taken from either.
            let error =
                apply(&store, Verb::Acquire, &["untouched", key], &limit).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt(_)), "{key}: {error}");
            apply(&store, Verb::Reset, &[key], &limit).await.unwrap();
            assert!(acquire(&store, key, &limit).await.unwrap()[0].allowed);
        }
        assert_eq!(
            apply(&store, Verb::Peek, &["untouched"], &limit).await.unwrap()[0].remaining,
            5
        );
    });
}

#[test]
fn a_corrupt_value_is_answered_by_the_failure_policy() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    redis.cli(&["SET", "k", "hello"]);
    let local = headgate_store_memory::MemoryStore::default();
    let store = store(&runtime, &redis.url());
    let store = headgate::FailurePolicy::new(
        store,
        local,
        std::num::NonZeroU32::MIN,
        headgate::SystemClock::new(),
    );
    runtime.block_on(async {
        let limit = per_minute(5);
        for mode in [FailMode::Open, FailMode::Closed, FailMode::Local] {
            let key = headgate::Key::new("k").unwrap();
            let check = headgate::Check::new(key, &limit, Cost::ONE).unwrap().or_else(mode);
            let outcome =
                headgate::Store::apply(&store, Verb::Acquire, &check.into()).await.unwrap()[0];
            assert_eq!(outcome.degraded, Some(mode));
            assert_eq!(outcome.allowed, mode != FailMode::Closed);
        }
    });
}
