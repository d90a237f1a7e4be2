use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::Kafka;
use crate::Skip;

/// Names brokers for tests that only need some, whichever they are: `host:port`, with commas between.
const BROKERS_VARIABLE: &str = "HEADGATE_TEST_KAFKA_BROKERS";

/// Weak, since a static is never dropped: the broker goes with the last test that holds it.
static SHARED: Mutex<Weak<Kafka>> = Mutex::new(Weak::new());

/// A broker that other tests use at the same time: see [`Kafka::shared`].
#[derive(Debug, Clone)]
pub struct SharedKafka {
    brokers: String,
    _server: Option<Arc<Kafka>>,
}

// === impl SharedKafka ===

impl SharedKafka {
    pub(super) fn get() -> Result<Self, Skip> {
        if let Ok(brokers) = env::var(BROKERS_VARIABLE) {
            return Ok(Self { brokers, _server: None });
        }
        // Held while the broker starts: tests that begin together get the same one.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(Kafka::start()?),
        };
        *shared = Arc::downgrade(&server);
        Ok(Self { brokers: server.brokers(), _server: Some(server) })
    }

    /// The addresses for clients, with commas between.
    pub fn brokers(&self) -> &str {
        &self.brokers
    }

    /// The name of a topic that nobody has taken, also not another machine that tests on the same brokers.
    pub fn new_topic(&self) -> String {
        format!("headgate-test-{:016x}", RandomState::new().build_hasher().finish())
    }
}
