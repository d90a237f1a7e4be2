//! What the entrances share.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use headgate::Clock;
use headgate_guard::Backend;
use headgate_persistence::{Database, QuotaDatabase};
use headgate_service_config::{Document, Source, Watcher};
use nostr::key::PublicKey;
use tokio::sync::watch;

use crate::{
    config::Config,
    denylist::Denylist,
    documents::{BootstrapDocument, RelayDocument, UserApiDocument},
    metrics::Metrics,
};

/// What the entrances share. It is made by [`App::start`](crate::App::start).
pub struct Node {
    /// What the environment says.
    pub config: Config,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The documents, the quotas, and whatever an entrance keeps.
    pub database: Database,
    /// The quotas that the database keeps, and the clock of their days.
    pub quotas: QuotaDatabase,
    /// The relay's document in force.
    pub relay: Watcher<RelayDocument>,
    /// The user API's document in force.
    pub user_api: Watcher<UserApiDocument>,
    /// The document of bootstrap in force.
    pub bootstrap: Watcher<BootstrapDocument>,
    /// Addresses and public keys that the operator denies.
    pub denylist: Denylist,
    /// Where the guards of all entrances count.
    pub guards: Backend,
    /// What is counted.
    pub metrics: Metrics,
    /// Whether the node stops: balancers hear of it before anybody is let go.
    pub draining: AtomicBool,
    /// Becomes true when the node stops: whoever holds a connection lets go of it.
    pub stopping: watch::Receiver<bool>,
}

// === impl Node ===

impl Node {
    /// The time in seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.clock.now().as_micros() / 1_000_000
    }

    /// Whether the operator denies `address`.
    pub fn denies_address(&self, address: IpAddr) -> bool {
        self.denylist.denies_address(address, self.seconds())
    }

    /// Whether the operator denies a public key, as 64 hexadecimal digits.
    pub fn denies_key(&self, key: &str) -> bool {
        self.denylist.denies_key(key, self.seconds())
    }

    /// Whether the operator denies the author of an event.
    pub(crate) fn denies_author(&self, author: &PublicKey) -> bool {
        // Most lists name no keys: then nothing is allocated for each event.
        self.denylist.has_keys() && self.denies_key(&author.to_hex())
    }

    /// What each service runs on.
    pub fn sources(&self) -> [(&'static str, Source); 3] {
        [
            (RelayDocument::SERVICE, self.relay.source()),
            (UserApiDocument::SERVICE, self.user_api.source()),
            (BootstrapDocument::SERVICE, self.bootstrap.source()),
        ]
    }

    /// Reads the document of `service` again, without waiting to hear of a change.
    pub async fn refresh(&self, service: &str) {
        let documents = self.database.service_configs();
        match service {
            RelayDocument::SERVICE => self.relay.refresh(&documents).await,
            UserApiDocument::SERVICE => self.user_api.refresh(&documents).await,
            BootstrapDocument::SERVICE => self.bootstrap.refresh(&documents).await,
            _ => {}
        }
    }

    /// Whether the node says that it stops.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Returns when the node stops.
    pub async fn stopped(&self) {
        // A sender that is gone has stopped, too.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }
}
