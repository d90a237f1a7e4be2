//! Real servers for tests, each on a free loopback port with a folder of its own.
//!
//! - [`Redis`]: one server, which a test can kill, restart empty, pause and run on a [`FakeClock`];
//! - [`RedisCluster`]: masters and replicas that fail over within seconds;
//! - [`Sentinel`]: a master, a replica and three sentinels;
//! - [`Postgres`]: one server, which a test can crash and restart with its data, or a new
//!   [`Database`] on a shared server;
//! - [`Kafka`]: one broker, which a test can crash and restart with its data;
//! - [`DynamoDb`]: DynamoDB Local, which a test can kill, restart empty and pause;
//! - [`Nginx`]: with its Lua module, for gateway plugins;
//! - [`Helm`]: renders and lints charts;
//! - [`Envoy`]: the proxy, with the configuration of a test;
//! - [`RatelimitTests`]: the integration tests of envoyproxy/ratelimit;
//! - [`ManagementServer`]: an xDS server, whose configuration a test can change;
//! - [`find_grpcurl`]: calls gRPC methods from the command line;
//! - [`OpenMetricsParser`]: parses metrics as the standard says;
//! - [`Schemathesis`]: requests generated from an `OpenAPI` document;
//! - [`Browser`]: Chromium, driven by scripts;
//! - [`NostrClient`]: third-party Nostr clients, driven by scripts;
//! - [`SmallDisk`]: a disk that a test can fill;
//! - [`Issuer`]: signs tokens and publishes its keys, which a test can rotate, break and withdraw;
//! - [`CertificateAuthority`]: issues certificates for servers and clients;
//! - [`CapturedLog`]: what a test's thread logs;
//! - [`skewed_clock`]: environment variables for a program with a wrong clock;
//! - [`require!`]: skips a test if the machine lacks a component ([`Skip`]).
//!
//! Dropping a handle kills its servers, waits for them and removes their folders, also when the
//! test panics. If `setpriv` of util-linux is installed, servers also die with a killed test
//! process; only their temporary folders then stay.
//!
//! All functions block. An async test that has to keep other tasks running calls them on a blocking
//! thread.
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
mod certificate_authority;
mod cluster;
mod disk;
mod dynamodb;
mod envoy;
mod grpcurl;
mod helm;
mod issuer;
mod java;
mod kafka;
mod log;
mod management_server;
mod nginx;
mod nostr;
mod open_metrics;
mod port;
mod postgres;
mod process;
mod ratelimit_tests;
mod redis;
mod schemathesis;
mod sentinel;
mod shared;
mod skip;
mod wait;

pub use self::{
    browser::Browser,
    certificate_authority::{CertificateAuthority, IssuedCertificate, Validity},
    cluster::RedisCluster,
    disk::SmallDisk,
    dynamodb::DynamoDb,
    envoy::Envoy,
    grpcurl::find_grpcurl,
    helm::Helm,
    issuer::{Algorithm, Answer, IdToken, Issuer, SigningKey},
    kafka::{Kafka, KafkaBuilder, SecureListeners},
    log::CapturedLog,
    management_server::{Certificates, Heard, ManagementServer},
    nginx::Nginx,
    nostr::NostrClient,
    open_metrics::OpenMetricsParser,
    port::free_port,
    postgres::{Database, Postgres, PostgresBuilder},
    ratelimit_tests::RatelimitTests,
    redis::{FakeClock, Redis, RedisBuilder, skewed_clock},
    schemathesis::Schemathesis,
    sentinel::Sentinel,
    shared::{SharedDynamoDb, SharedKafka, SharedRedis},
    skip::{SKIPPABLE_IN_CI, Skip, find_program},
    wait::wait_until,
};
