//! What is learned from each answer of the database.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    cutoff::Cutoff,
    migrations::SchemaVersion,
    outage::Outage,
    query::{Query, QueryObserver},
    writes::Writes,
};

/// Receives how long statements take, if anybody wants to know.
pub(crate) type Observer = Option<Arc<dyn QueryObserver>>;

/// Learns from each answer of the database.
#[derive(Clone)]
pub(crate) struct Watch {
    observer: Observer,
    pub(crate) writes: Writes,
    pub(crate) cutoff: Cutoff,
    schema: Arc<OnceLock<SchemaVersion>>,
}

// === impl Watch ===

impl Watch {
    pub(crate) fn new(observer: Observer, cutoff: Cutoff) -> Self {
        Self { observer, writes: Writes::default(), cutoff, schema: Arc::default() }
    }

    /// Notes which version the tables have.
    pub(crate) fn migrated(&self, version: SchemaVersion) {
        let version = *self.schema.get_or_init(|| version);
        if let Some(observer) = &self.observer {
            observer.migrated(version);
        }
    }

    pub(crate) fn schema_version(&self) -> Option<SchemaVersion> {
        self.schema.get().copied()
    }

    /// Tells how long a statement took.
    pub(crate) fn took(&self, query: Query, took: Duration) {
        if let Some(observer) = &self.observer {
            observer.answered(query, took);
        }
    }

    /// Notes that a write was committed.
    pub(crate) fn written(&self) {
        self.writes.succeeded();
        if let Some(observer) = &self.observer {
            observer.writable(true);
        }
    }

    /// Notes a failure of a transaction. What the database refused for good reason says nothing of
    /// its health.
    pub(crate) fn failed(&self, outage: &Outage, was_writing: bool) {
        if outage.is_refusal() {
            return;
        }
        if outage.condemns_connections() {
            self.cutoff.renew();
        }
        if was_writing {
            self.writes.failed(outage.to_string());
            if let Some(observer) = &self.observer {
                observer.writable(false);
            }
        }
    }
}
