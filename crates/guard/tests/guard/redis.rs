//! The layer with counters in Redis.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use headgate::FailMode;
use headgate_guard::{Allowance, Backend, Class, Guard, Policy, Routes};
use headgate_store_leased::LeasedStore;
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use tower::{ServiceBuilder, ServiceExt as _};

use crate::support::{DAY, Server, daily, header, hello, request};

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A busy machine is not an outage.
const PATIENCE: Duration = Duration::from_secs(30);

fn connect(redis: &Redis) -> RedisStore {
    let config = RedisConfig::from_url(&redis.url()).unwrap();
    RedisStore::connect(config.timeout(PATIENCE).connect_timeout(PATIENCE))
}

/// Limits per day: without Redis they refill by the clock of this machine, which does not stand
/// still.
fn on_redis(redis: &Redis, per_day: u64, fail_mode: FailMode) -> Guard {
    let backend = Backend::shared(Arc::new(connect(redis)), TWO).fail_mode(fail_mode);
    Guard::builder(daily(per_day), Routes::all("public")).backend(backend).build().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_share_one_limit_and_split_it_while_redis_is_down() {
    // Its clock stands still, however long the requests take.
    let redis = require!(Redis::builder().fake_clock(1_800_000_000_000_000).start());
    let guards = [(); 2].map(|()| on_redis(&redis, 6, FailMode::Local));
    let servers = [Server::behind(&guards[0]).await, Server::behind(&guards[1]).await];
    let admitted = async || {
        let mut admitted = 0;
        for _ in 0..10 {
            for server in &servers {
                admitted += u32::from(server.status("/").await == 200);
            }
        }
        admitted
    };
    assert_eq!(admitted().await, 6);
    let key = redis.cli(&["KEYS", "*"]);
    assert_eq!(key, "guard:public:ip:127.0.0.1");
    let denied = servers[0].get("/", &[]).await;
    assert_eq!(header(&denied, "retry-after"), "14400", "a sixth of a day");
    redis.kill();
    for server in &servers {
        assert_eq!(server.status("/").await, 429, "what was denied is remembered");
    }

    // Without a remembered denial, each instance enforces half of the limit.
    let guards = [(); 2].map(|()| on_redis(&redis, 6, FailMode::Local));
    let servers = [Server::behind(&guards[0]).await, Server::behind(&guards[1]).await];
    let mut admitted = 0;
    for _ in 0..10 {
        for server in &servers {
            admitted += u32::from(server.status("/").await == 200);
        }
    }
    assert_eq!(admitted, 6);

    redis.restart();
    // The circuit breaker lets one call through every half second.
    while redis.cli(&["KEYS", "*"]) != key {
        servers[0].status("/").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_class_admits_its_limit_with_few_calls() {
    const LIMIT: u64 = 300;
    let redis = require!(Redis::start());
    let store = Arc::new(LeasedStore::new(connect(&redis)));
    let class = Class::new("public").unwrap().by_address(Allowance::per(LIMIT, DAY).unwrap());
    let class = class.lease("20%/1000ms".parse().unwrap());
    let backend = Backend::shared(Arc::clone(&store) as _, TWO);
    let policy = Policy::new([class]).unwrap();
    let guard = Guard::builder(policy, Routes::all("public")).backend(backend).build().unwrap();
    // Without sockets: units are held for a second, which few requests may take on a busy machine.
    let service = ServiceBuilder::new().layer(guard.layer()).service(hello());
    let mut admitted = 0;
    while service.clone().oneshot(request()).await.unwrap().status() == 200 {
        admitted += 1;
    }
    let stats = store.stats();
    // A day's limit refills by one unit in 288 seconds.
    assert!((LIMIT - stats.lost..=LIMIT + 20).contains(&admitted), "{admitted}: {stats:?}");
    assert!(stats.admitted_locally > 0 && stats.calls < LIMIT, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn denials_outlast_an_outage_of_redis_in_every_mode() {
    let redis = require!(Redis::start());
    for fail_mode in FailMode::ALL {
        redis.cli(&["FLUSHALL"]);
        let guard = on_redis(&redis, 1, fail_mode);
        let server = Server::behind(&guard).await;
        assert_eq!(server.status("/").await, 200, "{fail_mode}");
        assert_eq!(server.status("/").await, 429, "{fail_mode}");
        redis.kill();
        for _ in 0..20 {
            assert_eq!(server.status("/").await, 429, "{fail_mode}");
        }
        redis.restart();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fail_mode_open_admits_and_closed_denies() {
    let redis = require!(Redis::start());
    redis.kill();
    for (fail_mode, expected) in [(FailMode::Open, 200), (FailMode::Closed, 429)] {
        let server = Server::behind(&on_redis(&redis, 1, fail_mode)).await;
        for _ in 0..4 {
            assert_eq!(server.status("/").await, expected, "{fail_mode}");
        }
    }
}
