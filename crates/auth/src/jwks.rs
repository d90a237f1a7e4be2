//! A cache of an issuer's keys.
//!
//! Reading takes no lock. Keys are fetched again in the background when they are old, and when a
//! token names an unknown one. While the issuer is unreachable, the cached keys stay valid.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use headgate::{Clock, Timestamp};
use tokio::{sync::Mutex, task::JoinHandle};
use tracing::{info, warn};

use crate::{
    fetch::JwksEndpoint,
    key::{KeySet, PublicKey},
};

/// Minimum interval between two fetches, regardless of the keys that tokens name.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// Minimum interval until the first keys arrive: no JWT is accepted before.
const FIRST_MIN_INTERVAL: Duration = Duration::from_secs(1);

/// The keys of one issuer. Clones share them.
#[derive(Clone)]
pub(crate) struct Jwks(Arc<Shared>);

struct Shared {
    endpoint: JwksEndpoint,
    clock: Arc<dyn Clock>,
    max_age: Duration,
    cached: ArcSwap<CachedKeys>,
    /// Start of the last fetch. The lock is held during a fetch.
    last_fetch: Mutex<Option<Timestamp>>,
}

#[derive(Default)]
struct CachedKeys {
    keys: KeySet,
    fetched_at: Option<Timestamp>,
}

// === impl Jwks ===

impl Jwks {
    pub(crate) fn new(endpoint: JwksEndpoint, max_age: Duration, clock: Arc<dyn Clock>) -> Self {
        let (cached, last_fetch) = (ArcSwap::default(), Mutex::default());
        Self(Arc::new(Shared { endpoint, clock, max_age, cached, last_fetch }))
    }

    /// Returns the issuer's key with the id `kid`.
    pub(crate) async fn find(&self, kid: &str) -> Option<Arc<PublicKey>> {
        if let Some((key, age)) = self.0.look_up(kid) {
            if age < self.0.max_age {
                return Some(key);
            }
            let refresh = self.refresh();
            if age < 2 * self.0.max_age {
                return Some(key);
            }
            // Unused for so long that the key may have been withdrawn meanwhile.
            finished(refresh).await;
        } else {
            finished(self.refresh()).await;
        }
        self.0.look_up(kid).map(|(key, _)| key)
    }

    /// Starts a fetch, unless the last one is too recent. It runs in a task of its own: a caller
    /// that disconnects does not cancel it.
    fn refresh(&self) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(&self.0);
        (!shared.is_too_early()).then(|| tokio::spawn(async move { shared.fetch().await }))
    }
}

// === impl Shared ===

impl Shared {
    fn look_up(&self, kid: &str) -> Option<(Arc<PublicKey>, Duration)> {
        let cached = self.cached.load();
        let age = cached.fetched_at.map(|at| elapsed(at, self.clock.now()))?;
        cached.keys.get(kid).map(|key| (Arc::clone(key), age))
    }

    /// Returns `true` if no fetch is under way and it is too early for another one.
    fn is_too_early(&self) -> bool {
        self.last_fetch.try_lock().is_ok_and(|last| !self.interval_is_over(*last))
    }

    fn interval_is_over(&self, last: Option<Timestamp>) -> bool {
        let has_keys = self.cached.load().fetched_at.is_some();
        let interval = if has_keys { MIN_INTERVAL } else { FIRST_MIN_INTERVAL };
        last.is_none_or(|at| elapsed(at, self.clock.now()) >= interval)
    }

    /// Fetches the keys, unless another task just did.
    async fn fetch(&self) {
        let mut last = self.last_fetch.lock().await;
        if !self.interval_is_over(*last) {
            return;
        }
        *last = Some(self.clock.now());
        match self.endpoint.fetch().await {
            Ok(keys) => {
                let count = keys.len();
                info!(keys = count, "fetched {count} keys from {}", self.endpoint);
                self.cached.store(Arc::new(CachedKeys { keys, fetched_at: *last }));
            }
            Err(error) => {
                warn!(%error, "failed to fetch keys from {}: {error}", self.endpoint);
            }
        }
    }
}

async fn finished(refresh: Option<JoinHandle<()>>) {
    if let Some(refresh) = refresh {
        // If the task panicked, the cached keys would stay.
        let _ = refresh.await;
    }
}

/// Returns the time between `at` and `now`. A clock that was set back ages keys as well, so that
/// none is used for too long.
fn elapsed(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(now.since(at).max(at.since(now)))
}
