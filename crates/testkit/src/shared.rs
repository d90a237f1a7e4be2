//! Servers that the tests of a process share, or that an environment variable names.

use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use crate::{DynamoDb, Kafka, Redis, Skip};

static REDIS: SharedServer<Redis> = SharedServer::new("HEADGATE_TEST_REDIS_URL");
static KAFKA: SharedServer<Kafka> = SharedServer::new("HEADGATE_TEST_KAFKA_BROKERS");
static DYNAMODB: SharedServer<DynamoDb> = SharedServer::new("HEADGATE_TEST_DYNAMODB_ENDPOINT");

/// A shared Redis server: see [`Redis::shared`].
#[derive(Debug, Clone)]
pub struct SharedRedis(Lease<Redis>);

/// A shared Kafka broker: see [`Kafka::shared`].
#[derive(Debug, Clone)]
pub struct SharedKafka(Lease<Kafka>);

/// A shared DynamoDB Local: see [`DynamoDb::shared`].
#[derive(Debug, Clone)]
pub struct SharedDynamoDb(Lease<DynamoDb>);

/// Starts a server on first use.
struct SharedServer<S> {
    /// Names a server to use instead.
    variable: &'static str,
    /// Weak, because statics are never dropped: the server ends with the last test that holds it.
    server: Mutex<Weak<S>>,
}

/// The address of a server, which runs while this is held.
#[derive(Debug)]
struct Lease<S> {
    address: String,
    server: Option<Arc<S>>,
}

// === impl SharedRedis ===

impl SharedRedis {
    pub(crate) fn get() -> Result<Self, Skip> {
        REDIS.get(Redis::start, Redis::url).map(Self)
    }

    /// The URL for clients.
    pub fn url(&self) -> &str {
        &self.0.address
    }
}

// === impl SharedKafka ===

impl SharedKafka {
    pub(crate) fn get() -> Result<Self, Skip> {
        KAFKA.get(Kafka::start, Kafka::brokers).map(Self)
    }

    /// The addresses for clients, comma-separated.
    pub fn brokers(&self) -> &str {
        &self.0.address
    }

    /// An unused topic name, also among other machines that test on the same brokers.
    pub fn new_topic(&self) -> String {
        unique_name()
    }
}

// === impl SharedDynamoDb ===

impl SharedDynamoDb {
    pub(crate) fn get() -> Result<Self, Skip> {
        DYNAMODB.get(DynamoDb::start, DynamoDb::endpoint).map(Self)
    }

    /// The URL for clients.
    pub fn endpoint(&self) -> &str {
        &self.0.address
    }

    /// An unused table name, also among other machines that test on the same server.
    pub fn new_table(&self) -> String {
        unique_name()
    }
}

// === impl SharedServer ===

impl<S> SharedServer<S> {
    const fn new(variable: &'static str) -> Self {
        Self { variable, server: Mutex::new(Weak::new()) }
    }

    fn get(
        &self,
        start: impl FnOnce() -> Result<S, Skip>,
        address: impl FnOnce(&S) -> String,
    ) -> Result<Lease<S>, Skip> {
        if let Ok(address) = env::var(self.variable) {
            return Ok(Lease { address, server: None });
        }
        // Held while the server starts, so that tests that start together get the same one.
        let mut shared = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(start()?),
        };
        *shared = Arc::downgrade(&server);
        Ok(Lease { address: address(&server), server: Some(server) })
    }
}

// === impl Lease ===

impl<S> Clone for Lease<S> {
    fn clone(&self) -> Self {
        Self { address: self.address.clone(), server: self.server.clone() }
    }
}

fn unique_name() -> String {
    format!("headgate-test-{:016x}", RandomState::new().build_hasher().finish())
}
