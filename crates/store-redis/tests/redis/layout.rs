//! Layout of the keys in Redis, as documented, and their TTLs.

use std::time::Duration;

use headgate::{
    Algorithm, Check, Cost, FailMode, Key, LeaseId, Limit, Spent, Store as _, StoreError, Verb,
};
use headgate_testkit::{Redis, require};

use crate::support::{acquire, apply, per_minute, runtime, store};

/// Time at which the fake clocks start.
const START: u64 = 1_772_928_000_000_000;

#[test]
fn a_token_bucket_is_a_hash_of_tokens_and_last_refill() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(acquire(&store, "ratelimit:user:user-001:60", &per_minute(100))).unwrap();

    let key = "ratelimit:user:user-001:60";
    assert_eq!(redis.cli(&["TYPE", key]), "hash");
    assert_eq!(redis.cli(&["HGET", key, "tokens"]), "99");
    assert_eq!(redis.cli(&["HGET", key, "last_refill"]), START.to_string(), "in microseconds");
    let ttl: u64 = redis.cli(&["TTL", key]).parse().unwrap();
    assert!((60..=61).contains(&ttl), "{ttl} s, not the window and a second");
}

#[test]
fn a_sliding_window_is_a_sorted_set_with_a_member_per_request() {
    let redis = require!(Redis::builder().fake_clock(START).start());
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
            // Requests of the same microsecond would share a member.
            redis.clock().advance(Duration::from_micros(1));
        }
    });
    let key = "rate_limiter:sliding_window:heavy";
    assert_eq!(redis.cli(&["TYPE", key]), "zset");
    assert_eq!(redis.cli(&["ZCARD", key]), "3", "two requests and the sum");
    let ttl: u64 = redis.cli(&["TTL", key]).parse().unwrap();
    assert!((60..=61).contains(&ttl), "{ttl} s, not the window and a second");
}

#[test]
fn every_key_has_a_ttl() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    runtime.block_on(async {
        for algorithm in Algorithm::ALL {
            let limit = match algorithm {
                Algorithm::Calendar => Limit::calendar(9, headgate::algorithm::Period::Day, "UTC"),
                algorithm => Limit::new(algorithm, 9, Duration::from_hours(24 * 366)),
            };
            let limit = limit.unwrap();
            let id = LeaseId::from(1);
            let verbs = [
                Verb::Acquire,
                Verb::Reserve { id, lease: Duration::from_mins(9) },
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
        // -2 if it has expired, -1 if it never does.
        assert_ne!(ttl, -1, "{key} lives for ever");
    }
}

/// The TTL is not set on every call.
#[test]
fn a_bucket_expires_when_it_is_full() {
    const SECOND: u64 = 1_000_000;
    const FILLS_IN: u64 = 60 * SECOND;
    const START: u64 = 30_000_000 * FILLS_IN;
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let limit = Limit::new(algorithm, 100, Duration::from_micros(FILLS_IN)).unwrap();
        // Units taken, and the seconds before.
        let soon = [(1, 0), (1, 31), (60, 1)];
        let later = [(1, 70), (1, 5), (97, 20), (1, 2), (50, 31), (5, 1)];
        for phase in [0, 9, 19, 28] {
            let (name, mut now) = (format!("{algorithm}:{phase}"), START + phase * SECOND);
            for (cost, passed) in soon.into_iter().chain(later) {
                now += passed * SECOND;
                redis.clock().set(now);
                let key = headgate::Key::new(&name).unwrap();
                let check = headgate::Check::new(key, &limit, Cost::new(cost).unwrap()).unwrap();
                let batch = check.into();
                let outcomes = headgate::Store::apply(&store, Verb::Acquire, &batch);
                let outcome = runtime.block_on(outcomes).unwrap()[0];
                assert!(outcome.allowed, "{name}: {outcome:?}");
                let ttl: u64 = redis.cli(&["PTTL", &name]).parse().unwrap();
                assert!(Duration::from_millis(ttl) >= outcome.reset_after, "{ttl} ms: {outcome:?}");
            }
        }
    }
}

/// Redis returns the values of a hash in the order of writing, or in any order once it has become a
/// hash table.
#[test]
fn the_order_of_the_fields_does_not_matter() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let since = START.to_string();
    for (algorithm, names, terms) in [
        (Algorithm::TokenBucket, ["tokens", "last_refill", "limit"], "10/60000000/10"),
        (Algorithm::LeakyBucket, ["level", "last_leak", "leak"], "leaky 10/60000000/10"),
    ] {
        let limit = Limit::new(algorithm, 10, Duration::from_secs(60)).unwrap();
        let values = ["5", &since, terms];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let key = format!("{algorithm}:{order:?}");
            let fields = order.into_iter().flat_map(|i| [names[i], values[i]]);
            let command: Vec<&str> = ["HSET", &key].into_iter().chain(fields).collect();
            redis.cli(&command);
            let outcome = runtime.block_on(acquire(&store, &key, &limit)).unwrap()[0];
            assert_eq!((outcome.allowed, outcome.remaining), (true, 4), "{key}: {outcome:?}");
            let expected = if algorithm == Algorithm::TokenBucket { "4" } else { "6" };
            assert_eq!(redis.cli(&["HGET", &key, names[0]]), expected, "{key}");
        }
    }
}

#[test]
fn token_and_leaky_buckets_do_not_read_each_other() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let [token, leaky] = [Algorithm::TokenBucket, Algorithm::LeakyBucket]
        .map(|algorithm| Limit::new(algorithm, 10, Duration::from_secs(60)).unwrap());
    let admitted = |key: &str, limit: &Limit| {
        u32::from(runtime.block_on(acquire(&store, key, limit)).unwrap()[0].allowed)
    };
    for (first, second) in [(&token, &leaky), (&leaky, &token)] {
        let key = first.algorithm().name();
        assert_eq!((0..20).map(|_| admitted(key, first)).sum::<u32>(), 10, "{key}");
        assert_eq!((0..20).map(|_| admitted(key, second)).sum::<u32>(), 10, "after {key}");
        let by_turns = format!("{key} by turns");
        let both = (0..20).map(|_| (admitted(&by_turns, first), admitted(&by_turns, second)));
        let (first, second): (Vec<_>, Vec<_>) = both.unzip();
        assert_eq!((first.iter().sum::<u32>(), second.iter().sum::<u32>()), (10, 10), "{by_turns}");
    }
}

/// A long lease field makes Redis convert a hash to a hash table, which has no order.
#[test]
fn a_bucket_returns_to_the_fast_path_after_its_leases() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let limit = Limit::new(algorithm, 10, Duration::from_secs(60)).unwrap();
        let (name, id) = (algorithm.name(), LeaseId::from(1));
        let reserve = Verb::Reserve { id, lease: Duration::from_secs(9) };
        for verb in [Verb::Acquire, reserve, Verb::Commit(id)] {
            runtime.block_on(apply(&store, verb, &[name], &limit)).unwrap();
        }
        redis.cli(&["CONFIG", "RESETSTAT"]);
        let outcome = runtime.block_on(acquire(&store, name, &limit)).unwrap()[0];
        assert_eq!((outcome.allowed, outcome.remaining), (true, 7), "{name}");
        let stats = redis.cli(&["INFO", "commandstats"]);
        assert!(!stats.contains("cmdstat_hmget"), "{name} took the slow path: {stats}");
    }
}

/// A reservation of several keys takes the slow path, and the settlement of one the fast one.
#[test]
fn a_settlement_does_not_shorten_the_ttl() {
    const LEASE: Duration = Duration::from_secs(3_600);
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let window = Duration::from_secs(1);
    for algorithm in
        [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingWindowCounter]
    {
        let limit = Limit::new(algorithm, 10, window).unwrap();
        let (name, id) = (algorithm.name(), LeaseId::from(1));
        let reserve = Verb::Reserve { id, lease: LEASE };
        runtime.block_on(apply(&store, reserve, &[name, "other"], &limit)).unwrap();
        let check = Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        let settle = check.spent(Spent::within_the_limit(0)).into();
        let settled = runtime.block_on(store.apply(Verb::Commit(id), &settle)).unwrap()[0];
        assert!(settled.allowed, "{name}");
        let ttl: u64 = redis.cli(&["TTL", name]).parse().unwrap();
        assert!(ttl >= LEASE.as_secs() - 60, "{name}: {ttl} s");
        redis.cli(&["DEL", "other"]);
    }
}

#[test]
fn a_changed_limit_extends_the_ttl() {
    let redis = require!(Redis::builder().fake_clock(30_000_000 * 60_000_000).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    for algorithm in Algorithm::ALL.into_iter().filter(|it| *it != Algorithm::Calendar) {
        let name = algorithm.name();
        let quick = Limit::new(algorithm, 100, Duration::from_secs(10)).unwrap();
        let slow = Limit::new(algorithm, 100, Duration::from_secs(1_000)).unwrap();
        let large = slow.clone().with_burst(1_000);
        let steps = [Ok(quick), Ok(slow), large].into_iter().flatten().zip([10, 1_000, 10_000]);
        for (limit, least) in steps {
            runtime.block_on(acquire(&store, name, &limit)).unwrap();
            let ttl: u64 = redis.cli(&["TTL", name]).parse().unwrap();
            assert!(ttl >= least, "{name}: {ttl} s of {least} s");
        }
    }
}

#[test]
fn the_largest_batch_is_one_call() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    let names: Vec<String> = (0..headgate::Batch::MAX_CHECKS).map(|i| format!("key:{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let limit = per_minute(5);
    // The first call loads the script.
    runtime.block_on(acquire(&store, "first", &limit)).unwrap();
    redis.cli(&["CONFIG", "RESETSTAT"]);
    for left in [4, 3] {
        let outcomes = apply(&store, Verb::Acquire, &names, &limit);
        let outcomes = runtime.block_on(outcomes).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.allowed && outcome.remaining == left));
    }
    let stats = redis.cli(&["INFO", "commandstats"]);
    let calls = |command: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(command)).unwrap_or(":calls=0,");
        line.split(['=', ',']).nth(1).unwrap().parse::<usize>().unwrap()
    };
    assert_eq!((calls("cmdstat_evalsha"), calls("cmdstat_eval:")), (2, 0), "{stats}");
    // The slow path would read each a second time, with HMGET.
    assert_eq!(
        (calls("cmdstat_hvals"), calls("cmdstat_hmget")),
        (2 * headgate::Batch::MAX_CHECKS, 0),
        "{stats}"
    );
}

#[test]
fn a_reset_deletes_the_key() {
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
fn a_foreign_value_is_an_error_of_that_key_until_a_reset() {
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
    let least = i64::MIN.to_string();
    let now = redis.cli(&["TIME"]).lines().next().unwrap().to_owned() + "000000";
    let limit = ["last_refill", &now, "limit", "5/60000000/5"];
    redis.cli(&[&["HSET", "wrong-number", "tokens", &least][..], &limit].concat());
    runtime.block_on(async {
        let limit = per_minute(5);
        for key in ["wrong-type", "wrong-content", "wrong-number"] {
            let error = acquire(&store, key, &limit).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt(_)), "{key}: {error}");
            assert!(!error.is_outage());
            assert!(acquire(&store, "healthy", &limit).await.unwrap()[0].allowed);
            // In a batch with a valid key, nothing is taken from either.
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
fn the_failure_policy_decides_for_a_corrupt_value() {
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
        for mode in FailMode::ALL {
            let key = headgate::Key::new("k").unwrap();
            let check = headgate::Check::new(key, &limit, Cost::ONE).unwrap().with_fail_mode(mode);
            let outcome =
                headgate::Store::apply(&store, Verb::Acquire, &check.into()).await.unwrap()[0];
            assert_eq!(outcome.degraded.and_then(headgate::Degraded::fail_mode), Some(mode));
            assert_eq!(outcome.allowed, mode != FailMode::Closed);
        }
    });
}
