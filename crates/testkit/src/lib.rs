//! Real servers for tests, each on a free loopback port with a folder of its own.
//!
//! - [`Redis`]: one server, which a test can kill, restart empty, pause and, with a [`FakeClock`], hold still in time;
//! - [`RedisCluster`]: masters and replicas that fail over within seconds;
//! - [`Sentinel`]: a master, a replica and three sentinels that watch them;
//! - [`Postgres`]: one server, which a test can stop as in a crash and start again with its data, or a fresh
//!   [`Database`] on a server that tests share;
//! - [`Kafka`]: one broker, which a test can stop as in a crash and start again with its data;
//! - [`DynamoDb`]: Amazon's DynamoDB Local, which a test can stop, start again empty and make hang;
//! - [`Nginx`]: with its Lua module, for plugins of gateways;
//! - [`Helm`]: makes and checks the objects of a chart;
//! - [`Envoy`]: the proxy, with a configuration of the test's own;
//! - [`RatelimitTests`]: the integration tests of envoyproxy/ratelimit, against any `headgate`;
//! - [`ManagementServer`]: of Envoy's configuration, which a test can change, and which it can stop and start again;
//! - [`Schemathesis`]: requests that an HTTP API's own description says it accepts, or refuses;
//! - [`Browser`]: Chromium, driven by scripts;
//! - [`NostrClient`]: Nostr clients of other makers, driven by scripts;
//! - [`SmallDisk`]: a disk that a test can fill;
//! - [`Issuer`]: signs tokens and publishes its keys, which a test can rotate, break and take away;
//! - [`skewed_clock`]: the environment of a program whose clock is wrong;
//! - [`require!`]: what a test does when the machine lacks a component ([`Skip`]).
//!
//! Dropping a handle kills its servers, waits for them and removes their folders, also when the test panics. Where
//! util-linux's `setpriv` is installed, servers die with a test process that is itself killed; only their folders then
//! stay, for the system to clear with its other temporary files.
//!
//! Everything here blocks; an async test that must keep other tasks running calls it from a blocking thread.
//!
//! ```
//! # fn main() {
//! let redis = headgate_testkit::require!(headgate_testkit::Redis::start());
//! assert_eq!(redis.cli(&["SET", "greeting", "hello"]), "OK");
//!
//! redis.restart();
//! assert_eq!(redis.cli(&["EXISTS", "greeting"]), "0");
//! # }
//! ```

mod browser;
mod cache;
mod cluster;
mod disk;
mod dynamodb;
mod envoy;
mod helm;
mod issuer;
mod java;
mod kafka;
mod management_server;
mod nginx;
mod nostr;
mod port;
mod postgres;
mod process;
mod ratelimit_tests;
mod redis;
mod schemathesis;
mod sentinel;
mod skip;
mod wait;

pub use self::{
    browser::Browser,
    cluster::RedisCluster,
    disk::SmallDisk,
    dynamodb::{DynamoDb, SharedDynamoDb},
    envoy::Envoy,
    helm::Helm,
    issuer::{Algorithm, Answer, IdToken, Issuer, SigningKey},
    kafka::{Kafka, KafkaBuilder, SecureListeners, SharedKafka},
    management_server::{Certificates, Heard, ManagementServer},
    nginx::Nginx,
    nostr::NostrClient,
    port::free_port,
    postgres::{Database, Postgres, PostgresBuilder},
    ratelimit_tests::RatelimitTests,
    redis::{FakeClock, Redis, RedisBuilder, SharedRedis, skewed_clock},
    schemathesis::Schemathesis,
    sentinel::Sentinel,
    skip::{SKIPPABLE_IN_CI, Skip, find_program},
    wait::wait_until,
};
