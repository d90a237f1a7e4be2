//! Two instances on a real Redis.

use std::{
    env,
    io::{BufRead as _, BufReader},
    num::NonZeroU32,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use headgate::FailMode;
use headgate_guard::{Backend, Guard, Rejections, SharedInFlight};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, RedisCluster, require};
use http_body_util::BodyExt as _;

use super::{PATIENCE, assert_never_more_than, instance, per_client, send, status, until_admitted};

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// Name of the variable with the URL of the Redis in which a process holds a place.
const HOLD_IN: &str = "HEADGATE_TEST_HOLD_IN";

/// Key of the places of a client on this machine.
const KEY: &str = "guard:exports:open:127.0.0.1";

fn on_redis(url: &str, limits: SharedInFlight) -> (Guard, Arc<Rejections>) {
    on(RedisConfig::from_url(url).unwrap(), limits)
}

fn on(config: RedisConfig, limits: SharedInFlight) -> (Guard, Arc<Rejections>) {
    // A busy machine is not an outage.
    let config = config.timeout(PATIENCE).connect_timeout(PATIENCE);
    let rejections = Arc::new(Rejections::default());
    let backend = Backend::shared(Arc::new(RedisStore::connect(config)), TWO);
    let backend = backend.fail_mode(FailMode::Local).observer(Arc::clone(&rejections) as _);
    (instance(limits, backend), rejections)
}

fn two(redis: &Redis, limits: &SharedInFlight) -> [Guard; 2] {
    [(); 2].map(|()| on_redis(&redis.url(), limits.clone()).0)
}

async fn until(what: &str, mut is_met: impl FnMut() -> bool) {
    let met = async {
        while !is_met() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, met).await.is_ok(), "{what}");
}

/// A process that is killed when dropped.
struct Instance(Child);

impl Instance {
    /// Starts a process that holds a place, and waits until it does.
    fn start(redis: &Redis) -> Self {
        let test = "shared_in_flight::redis::a_place_is_held_by_a_process_until_it_is_killed";
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(HOLD_IN, redis.url())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let holds = lines.any(|line| line.unwrap().contains("200"));
        let instance = Self(child);
        assert!(holds, "the process holds a place");
        instance
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_never_have_more_requests_in_flight_than_the_limit() {
    let redis = require!(Redis::start());
    for limits in [per_client(3), per_client(100).and_in_all(3).unwrap()] {
        assert_never_more_than(3, &two(&redis, &limits)).await;
        assert_eq!(redis.cli(&["KEYS", "*"]), "", "every place is released");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_on_a_cluster_never_have_more_requests_in_flight_than_the_limit() {
    let cluster = require!(RedisCluster::start(3, 0));
    // The places of a client and of all are in different slots.
    let limits = per_client(100).and_in_all(3).unwrap();
    let config = || RedisConfig::cluster(&cluster.urls()).unwrap();
    let guards = [(); 2].map(|()| on(config(), limits.clone()).0);
    assert_never_more_than(3, &guards).await;
    for node in 0..3 {
        assert_eq!(cluster.node(node).cli(&["KEYS", "*"]), "", "every place is released");
    }
    let response = send(&guards[0]).await;
    assert_eq!(response.status(), 200);
    drop(response);
    guards[0].release_in_flight().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_released_on_redis_when_the_body_has_ended_or_was_dropped() {
    let redis = require!(Redis::start());
    let [one, other] = two(&redis, &per_client(1).and_in_all(5).unwrap());
    let response = send(&one).await;
    assert_eq!(status(&other).await, 429);
    assert_eq!(redis.cli(&["ZSCORE", KEY, "#"]), "1");
    response.into_body().collect().await.unwrap();
    drop(until_admitted(&other).await);
    drop(until_admitted(&one).await);
    one.release_in_flight().await;
    other.release_in_flight().await;
    assert_eq!(redis.cli(&["KEYS", "*"]), "");
}

/// The end of the last lease by the clock of Redis, in microseconds.
fn last_end(redis: &Redis) -> u64 {
    let last = redis.cli(&["ZRANGE", KEY, "-1", "-1", "WITHSCORES"]);
    last.split_whitespace().last().unwrap().parse::<f64>().unwrap() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_keeps_its_place_for_longer_than_a_lease() {
    let lease = Duration::from_secs(2);
    let redis = require!(Redis::builder().fake_clock(1_800_000_000_000_000).start());
    let limits = per_client(1).lease(lease).unwrap();
    let (one, rejections) = on_redis(&redis.url(), limits.clone());
    let (other, _) = on_redis(&redis.url(), limits);
    let response = send(&one).await;
    for _ in 0..4 {
        redis.clock().advance(lease * 3 / 4);
        let end = redis.clock().now() + lease.as_micros() as u64;
        until("the lease is renewed", || last_end(&redis) == end).await;
        assert_eq!(status(&other).await, 429);
    }
    assert_eq!(rejections.places_lost_count(), 0);
    drop(response);
    drop(until_admitted(&other).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_places_of_a_killed_instance_are_free_when_its_leases_end() {
    let redis = require!(Redis::builder().fake_clock(1_800_000_000_000_000).start());
    let (guard, _) = on_redis(&redis.url(), per_client(1));
    let killed = Instance::start(&redis);
    assert_eq!(status(&guard).await, 429);
    drop(killed);
    let almost = SharedInFlight::MAX_LEASE.saturating_sub(Duration::from_micros(1));
    redis.clock().advance(almost);
    assert_eq!(status(&guard).await, 429, "until the lease ends");
    redis.clock().advance(Duration::from_micros(1));
    assert_eq!(status(&guard).await, 200);
}

/// Part of the test before: run by itself, it does nothing.
#[tokio::test]
async fn a_place_is_held_by_a_process_until_it_is_killed() {
    let Ok(url) = env::var(HOLD_IN) else { return };
    let (guard, _) = on_redis(&url, per_client(1));
    let response = send(&guard).await;
    println!("{}", response.status());
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_were_taken_while_redis_was_down_move_there_when_it_is_back() {
    let redis = require!(Redis::start());
    redis.kill();
    // Places move when their leases are renewed, after a third of them. What is left is longer than
    // a busy machine stands still.
    let limits = per_client(4).lease(Duration::from_secs(15)).unwrap();
    let guards = two(&redis, &limits);
    let mut held = Vec::new();
    for guard in &guards {
        for expected in [200, 200, 429] {
            let response = send(guard).await;
            assert_eq!(response.status(), expected, "each has its share");
            held.push(response);
        }
    }
    redis.restart();
    until("the places are in Redis", || redis.cli(&["ZSCORE", KEY, "#"]) == "4").await;
    assert_eq!(status(&guards[0]).await, 429);
    drop(held);
    for guard in &guards {
        guard.release_in_flight().await;
    }
    assert_eq!(redis.cli(&["KEYS", "*"]), "");
}
