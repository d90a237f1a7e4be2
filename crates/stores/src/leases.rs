use std::{future, sync::Arc, time::Duration};

use headgate::{Clock, Grant, Key, Store};
use headgate_store_leased::LeasedStore;
use tokio::time::timeout;
use tracing::warn;

/// The store that leases: around the shared store, within the failure policy.
pub(crate) type SharedLeases = LeasedStore<Arc<dyn Store>, Arc<dyn Clock>>;

/// Units that this server took in advance from the shared store. Without one there are none.
#[derive(Clone)]
pub struct Leases(Option<Arc<SharedLeases>>);

impl Leases {
    /// Bound on giving everything back when the server stops.
    const LAST_GIVE_BACK: Duration = Duration::from_secs(2);

    pub(crate) const fn none() -> Self {
        Self(None)
    }

    pub(crate) const fn of(store: Arc<SharedLeases>) -> Self {
        Self(Some(store))
    }

    /// Units of one subject that this server holds, and until when.
    pub fn held_of(&self, key: Key<'_>) -> Option<Grant> {
        self.0.as_ref().and_then(|store| store.held_of(key))
    }

    /// Gives back what is not used, before it ends. Runs until it is dropped.
    pub async fn give_back_unused(self) {
        match self.0 {
            Some(store) => store.give_back_unused().await,
            None => future::pending().await,
        }
    }

    /// Gives back everything when the server stops. What does not arrive in time is missing until
    /// it flows back by itself.
    pub async fn give_back_all(&self) {
        let Some(store) = &self.0 else { return };
        if timeout(Self::LAST_GIVE_BACK, store.give_back_all()).await.is_err() {
            warn!("stopped before all leased units were given back; they are missing for a while");
        }
    }
}
