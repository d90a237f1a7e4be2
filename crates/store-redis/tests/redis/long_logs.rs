//! The work of Redis for subjects with long logs.

use std::time::Duration;

use headgate::{Batch, Check, Cost, Key, LeaseId, Limit, Outcome, Store, Verb};
use headgate_store_redis::RedisStore;
use headgate_testkit::{Redis, require};

use crate::support::{runtime, store};

const ENTRIES: u64 = 20_000;
const LIMIT: u64 = 30_000;
const KEY: &str = "long";

/// Adds entries of one unit, as the script would have written them, the oldest of which is this
/// many seconds old.
fn fill(redis: &Redis, seconds_old: u64) {
    let script = "local t = redis.call('TIME')
        local first = (t[1] - ARGV[2]) * 1000000
        for i = 0, ARGV[1] - 1 do
          local at = string.format('%.0f', first + i)
          redis.call('ZADD', KEYS[1], at, '0000000:1:' .. at)
        end
        redis.call('ZADD', KEYS[1], ARGV[1], '#')
        return redis.call('PEXPIRE', KEYS[1], 3600000)";
    let (entries, old) = (ENTRIES.to_string(), seconds_old.to_string());
    assert_eq!(redis.cli(&["EVAL", script, "1", KEY, &entries, &old]), "1");
}

async fn ask(store: &RedisStore, verb: Verb, cost: u64) -> Outcome {
    let limit = Limit::sliding_window(LIMIT, Duration::from_hours(1)).unwrap();
    let check = Check::new(Key::new(KEY).unwrap(), &limit, Cost::new(cost).unwrap()).unwrap();
    store.apply(verb, &Batch::from(check)).await.unwrap()[0]
}

fn stat(redis: &Redis, section: &str, name: &str) -> u64 {
    let info = redis.cli(&["INFO", section]);
    let line = info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
    line.trim().split([',']).next().unwrap().parse().unwrap()
}

/// Bytes that Redis sends, and entries of sorted sets that it looks for, per check.
fn work(redis: &Redis, checks: impl AsyncFn(), runtime: &tokio::runtime::Runtime) -> (u64, u64) {
    let bytes = || stat(redis, "stats", "total_net_output_bytes:");
    let calls = || {
        let ranges = ["zrange", "zrangebyscore", "zrevrange"]
            .map(|command| stat(redis, "commandstats", &format!("cmdstat_{command}:calls=")));
        ranges.iter().sum::<u64>()
    };
    // Reading the statistics is among the bytes.
    let (own, before) = (bytes(), bytes());
    let (own, called) = (before - own, calls());
    let before = bytes();
    runtime.block_on(checks());
    let sent = bytes() - before;
    (sent.saturating_sub(own), calls() - called)
}

#[test]
fn a_reservation_does_not_make_checks_of_a_long_log_expensive() {
    const CHECKS: u64 = 10;
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    fill(&redis, 60);
    let reserve = Verb::Reserve { id: LeaseId::from(7), lease: Duration::from_mins(30) };
    assert!(runtime.block_on(ask(&store, reserve, 1)).allowed);

    let all = async || {
        for _ in 0..CHECKS {
            assert!(ask(&store, Verb::Peek, 1).await.allowed);
            assert!(ask(&store, Verb::Acquire, 1).await.allowed);
            // Two thirds of the log are in the way.
            assert!(!ask(&store, Verb::Acquire, 25_000).await.allowed);
        }
    };
    let (bytes, calls) = work(&redis, all, &runtime);
    assert!(bytes < 3 * CHECKS * 10_000, "{bytes} bytes for {} checks", 3 * CHECKS);
    assert!(calls <= 3 * CHECKS * 10, "{calls} reads for {} checks", 3 * CHECKS);

    // Every entry has one unit, so the time is exact. Two members are not entries.
    let denied = runtime.block_on(ask(&store, Verb::Peek, 25_000));
    let rank = (LIMIT - denied.remaining + 25_000 - LIMIT + 1).to_string();
    let found = redis.cli(&["ZRANGE", KEY, &rank, &rank, "WITHSCORES"]);
    let leaves: u64 = found.lines().last().unwrap().parse::<u64>().unwrap() + 3_600_000_000;
    assert_eq!((denied.at + denied.retry_after).as_micros(), leaves);
}

#[test]
fn expired_entries_are_read_once() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = store(&runtime, &redis.url());
    fill(&redis, 3_601 + 60);
    let now = "local t = redis.call('TIME')
        local at = string.format('%.0f', t[1] * 1000000)
        redis.call('ZADD', KEYS[1], at, '0000000:1:' .. at)
        return redis.call('ZINCRBY', KEYS[1], 1, '#')";
    assert_eq!(redis.cli(&["EVAL", now, "1", KEY]), (ENTRIES + 1).to_string());
    let peeked = runtime.block_on(ask(&store, Verb::Peek, LIMIT));
    assert_eq!((peeked.allowed, peeked.remaining), (false, LIMIT - 1));
    assert_eq!(redis.cli(&["ZCARD", KEY]), "2", "the entry and the sum");
}
