use std::{
    env,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::Redis;
use crate::Skip;

/// Names a server for tests that only need one, whichever it is.
const URL_VARIABLE: &str = "HEADGATE_TEST_REDIS_URL";

/// Weak, since a static is never dropped: the server goes with the last test that holds it.
static SHARED: Mutex<Weak<Redis>> = Mutex::new(Weak::new());

/// A server that other tests use at the same time: see [`Redis::shared`].
#[derive(Debug, Clone)]
pub struct SharedRedis {
    url: String,
    _server: Option<Arc<Redis>>,
}

// === impl SharedRedis ===

impl SharedRedis {
    pub(super) fn get() -> Result<Self, Skip> {
        if let Ok(url) = env::var(URL_VARIABLE) {
            return Ok(Self { url, _server: None });
        }
        // Held while the server starts: tests that begin together get the same one.
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match shared.upgrade() {
            Some(server) => server,
            None => Arc::new(Redis::start()?),
        };
        *shared = Arc::downgrade(&server);
        Ok(Self { url: server.url(), _server: Some(server) })
    }

    /// The address for clients.
    pub fn url(&self) -> &str {
        &self.url
    }
}
