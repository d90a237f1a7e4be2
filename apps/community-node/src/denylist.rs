//! The denylist: addresses, networks and public keys that the operator denies, whatever their
//! limits.
//!
//! The list is in the database. Nodes that share it poll its revision every second. While the
//! database is unavailable, the list stays as it was.
//!
//! | module | contents |
//! |---|---|
//! | `subject` | the subject of an entry |
//! | `compiled` | the list, compiled for lookups |

mod compiled;
mod subject;

use std::{net::IpAddr, time::Duration};

use headgate_persistence::DenylistDatabase;
use headgate_service_config::DocumentStoreError;
use prometheus::IntGauge;
use tokio::{
    sync::{Mutex, watch},
    time,
};
use tracing::{info, warn};

use self::compiled::Compiled;
pub(crate) use self::subject::{Subject, SubjectError};

/// Interval at which the revision is polled.
const POLL: Duration = Duration::from_secs(1);

/// The denylist in force. Lookups take no lock.
#[derive(Debug)]
pub struct Denylist {
    database: DenylistDatabase,
    current: watch::Sender<Compiled>,
    /// Serialises reads of the database, so that an older list never replaces a newer one.
    reading: Mutex<()>,
    entries: IntGauge,
}

// === impl Denylist ===

impl Denylist {
    /// An empty list until the first read; `entries` is the gauge of its size.
    pub(crate) fn new(database: DenylistDatabase, entries: IntGauge) -> Self {
        let current = watch::Sender::new(Compiled::default());
        Self { database, current, reading: Mutex::new(()), entries }
    }

    /// Returns true if `address` is denied at `now`, in seconds since the Unix epoch.
    pub fn denies_address(&self, address: IpAddr, now: u64) -> bool {
        self.current.borrow().denies_address(address, now)
    }

    /// Returns true if a public key, as 64 hexadecimal digits, is denied at `now`.
    pub fn denies_key(&self, key: &str, now: u64) -> bool {
        self.current.borrow().denies_key(key, now)
    }

    /// Returns true once the list has been read. Until then it is empty.
    pub fn is_loaded(&self) -> bool {
        self.current.borrow().revision.is_some()
    }

    /// Returns true if any entry is about a public key.
    pub fn has_keys(&self) -> bool {
        self.current.borrow().has_keys()
    }

    /// Subscribes to changes of the list.
    pub(crate) fn changes(&self) -> watch::Receiver<Compiled> {
        self.current.subscribe()
    }

    /// Reads the list again.
    pub async fn refresh(&self) -> Result<(), DocumentStoreError> {
        let _turn = self.reading.lock().await;
        let list = self.database.load().await?;
        let present = self.current.borrow().revision;
        if present != Some(list.revision) {
            info!(revision = list.revision, entries = list.entries.len(), "loaded the denylist");
            self.entries.set(i64::try_from(list.entries.len()).unwrap_or(i64::MAX));
            self.current.send_replace(Compiled::new(&list));
        }
        Ok(())
    }

    /// Keeps the list up to date; never returns.
    pub(crate) async fn follow(&self) {
        let mut is_away = false;
        loop {
            let followed = self.follow_once().await;
            if let Err(error) = &followed
                && !is_away
            {
                warn!(%error, "failed to read the denylist; keeping the last one");
            }
            is_away = followed.is_err();
            time::sleep(POLL).await;
        }
    }

    async fn follow_once(&self) -> Result<(), DocumentStoreError> {
        let revision = Some(self.database.revision().await?);
        let present = self.current.borrow().revision;
        if revision == present { Ok(()) } else { self.refresh().await }
    }
}
