use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::DynamoDb;
use crate::Skip;

/// Names a server for tests that only need one, whichever it is, as a URL.
const ENDPOINT_VARIABLE: &str = "HEADGATE_TEST_DYNAMODB_ENDPOINT";

/// Weak, since a static is never dropped: the server goes with the last test that holds it.
static SHARED: Mutex<Weak<DynamoDb>> = Mutex::new(Weak::new());

/// A server that other tests use at the same time: see [`DynamoDb::shared`].
#[derive(Debug, Clone)]
pub struct SharedDynamoDb {
    endpoint: String,
    _server: Option<Arc<DynamoDb>>,
}

// === impl SharedDynamoDb ===

impl SharedDynamoDb {
    pub(super) fn get() -> Result<Self, Skip> {
        if let Ok(endpoint) = env::var(ENDPOINT_VARIABLE) {
            return Ok(Self { endpoint, _server: None });
        }
        // Held while the server starts: tests that begin together get the same one.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(DynamoDb::start()?),
        };
        *shared = Arc::downgrade(&server);
        Ok(Self { endpoint: server.endpoint(), _server: Some(server) })
    }

    /// Where clients find it.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The name of a table that nobody has made, also not another machine that tests on the same server.
    pub fn new_table(&self) -> String {
        format!("headgate-test-{:016x}", RandomState::new().build_hasher().finish())
    }
}
