//! State that the entrances share.

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
use headgate_serve::Tls;
use headgate_service_config::{Document, Source, Watcher};
use nostr::key::PublicKey;
use tokio::sync::watch;

use crate::{
    config::Config,
    denylist::Denylist,
    documents::{BootstrapDocument, RelayDocument, UserApiDocument},
    metrics::Metrics,
};

/// State that the entrances share, built by [`App::start`](crate::App::start).
pub struct Node {
    /// Configuration.
    pub config: Config,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Database of documents, quotas and reports.
    pub database: Database,
    /// Quotas in the database, and the clock of their days.
    pub quotas: QuotaDatabase,
    /// The relay's document in force.
    pub relay: Watcher<RelayDocument>,
    /// The user API's document in force.
    pub user_api: Watcher<UserApiDocument>,
    /// The bootstrap document in force.
    pub bootstrap: Watcher<BootstrapDocument>,
    /// Addresses and public keys that the operator denies.
    pub denylist: Denylist,
    /// Backend of the guards of all entrances.
    pub guards: Backend,
    /// Metrics.
    pub metrics: Metrics,
    /// TLS of the listeners.
    pub tls: Option<Arc<Tls>>,
    /// True if the node is about to stop: load balancers see it before connections are closed.
    pub draining: AtomicBool,
    /// Becomes true when the node stops and connections must end.
    pub stopping: watch::Receiver<bool>,
}

// === impl Node ===

impl Node {
    /// Time in seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.clock.now().as_micros() / 1_000_000
    }

    /// Returns true if the operator denies `address`.
    pub fn denies_address(&self, address: IpAddr) -> bool {
        self.denylist.denies_address(address, self.seconds())
    }

    /// Returns true if the operator denies a public key, as 64 hexadecimal digits.
    pub fn denies_key(&self, key: &str) -> bool {
        self.denylist.denies_key(key, self.seconds())
    }

    /// Returns true if the operator denies the author of an event.
    pub(crate) fn denies_author(&self, author: &PublicKey) -> bool {
        // Most lists have no keys; then nothing is allocated for each event.
        self.denylist.has_keys() && self.denies_key(&author.to_hex())
    }

    /// Sources of the services' settings.
    pub fn sources(&self) -> [(&'static str, Source); 3] {
        [
            (RelayDocument::SERVICE, self.relay.source()),
            (UserApiDocument::SERVICE, self.user_api.source()),
            (BootstrapDocument::SERVICE, self.bootstrap.source()),
        ]
    }

    /// Reads the document of `service` again, without waiting for a notification.
    pub async fn refresh(&self, service: &str) {
        let documents = self.database.service_configs();
        match service {
            RelayDocument::SERVICE => self.relay.refresh(&documents).await,
            UserApiDocument::SERVICE => self.user_api.refresh(&documents).await,
            BootstrapDocument::SERVICE => self.bootstrap.refresh(&documents).await,
            _ => {}
        }
    }

    /// Returns true if the node is about to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Returns when the node stops.
    pub async fn stopped(&self) {
        // If the sender is dropped, the node has stopped, too.
        let _ = self.stopping.clone().wait_for(|stopping| *stopping).await;
    }
}
