//! An issuer's keys, kept at hand.
//!
//! Reading them takes no lock. They are fetched again when they are old, in the background, and when a
//! token names one that is not there; while the issuer is away, the keys that are there go on counting.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use headgate::{Clock, Timestamp};
use tokio::{sync::Mutex, task::JoinHandle};
use tracing::{info, warn};

use super::{
    fetch::Source,
    key::{KeySet, PublicKey},
};

/// Whatever kids tokens name, the issuer is not asked more often.
const PAUSE: Duration = Duration::from_secs(10);

/// Until there are keys, nobody gets in, so the issuer is asked more often.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The keys of one issuer.
pub(super) struct Jwks(Arc<Shared>);

struct Shared {
    source: Source,
    clock: Arc<dyn Clock>,
    max_age: Duration,
    held: ArcSwap<Held>,
    /// When the issuer was last asked. Whoever holds the lock is asking.
    asked: Mutex<Option<Timestamp>>,
}

/// Keys, and when they came.
#[derive(Default)]
struct Held {
    keys: KeySet,
    fetched: Option<Timestamp>,
}

// === impl Jwks ===

impl Jwks {
    pub(super) fn new(source: Source, max_age: Duration, clock: Arc<dyn Clock>) -> Self {
        let (held, asked) = (ArcSwap::default(), Mutex::default());
        Self(Arc::new(Shared { source, clock, max_age, held, asked }))
    }

    /// The issuer's key that is called `kid`.
    pub(super) async fn find(&self, kid: &str) -> Option<Arc<PublicKey>> {
        if let Some((key, age)) = self.0.look_up(kid) {
            if age < self.0.max_age {
                return Some(key);
            }
            let refresh = self.refresh();
            if age < 2 * self.0.max_age {
                return Some(key);
            }
            // Nobody came by for so long that the key may have been withdrawn meanwhile.
            settled(refresh).await;
        } else {
            settled(self.refresh()).await;
        }
        self.0.look_up(kid).map(|(key, _)| key)
    }

    /// Has the issuer asked, unless it is too early for that. In a task of its own: a caller that
    /// goes away does not take the answer with it.
    fn refresh(&self) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(&self.0);
        (!shared.resting()).then(|| tokio::spawn(async move { shared.ask().await }))
    }
}

// === impl Shared ===

impl Shared {
    fn look_up(&self, kid: &str) -> Option<(Arc<PublicKey>, Duration)> {
        let held = self.held.load();
        let age = held.fetched.map(|at| elapsed(at, self.clock.now()))?;
        held.keys.get(kid).map(|key| (Arc::clone(key), age))
    }

    /// Whether nobody is asking the issuer, and nobody may.
    fn resting(&self) -> bool {
        self.asked.try_lock().is_ok_and(|asked| !self.pause_is_over(*asked))
    }

    fn pause_is_over(&self, asked: Option<Timestamp>) -> bool {
        let pause = if self.held.load().fetched.is_some() { PAUSE } else { FIRST_PAUSE };
        asked.is_none_or(|at| elapsed(at, self.clock.now()) >= pause)
    }

    /// Fetches the keys, unless that was just done.
    async fn ask(&self) {
        let mut asked = self.asked.lock().await;
        if !self.pause_is_over(*asked) {
            return;
        }
        *asked = Some(self.clock.now());
        match self.source.fetch().await {
            Ok(keys) => {
                let count = keys.len();
                info!(keys = count, "Fetched {count} keys from {}", self.source);
                self.held.store(Arc::new(Held { keys, fetched: *asked }));
            }
            Err(error) => {
                warn!(%error, "Cannot fetch keys from {}: {error}", self.source);
            }
        }
    }
}

async fn settled(refresh: Option<JoinHandle<()>>) {
    if let Some(refresh) = refresh {
        // It cannot fail; if it did, the keys would be those from before.
        let _ = refresh.await;
    }
}

/// The time from `at` to `now`; a clock that was set back counts as much as one that went on, so
/// that keys never look young for long.
fn elapsed(at: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(now.since(at).max(at.since(now)))
}
