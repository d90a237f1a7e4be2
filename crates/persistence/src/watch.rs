//! Observes the results of statements.

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

/// Observer of durations, if there is one.
pub(crate) type Observer = Option<Arc<dyn QueryObserver>>;

/// Tracks the health of the database by the results of statements.
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

    /// Records the version of the tables.
    pub(crate) fn migrated(&self, version: SchemaVersion) {
        let version = *self.schema.get_or_init(|| version);
        if let Some(observer) = &self.observer {
            observer.migrated(version);
        }
    }

    pub(crate) fn schema_version(&self) -> Option<SchemaVersion> {
        self.schema.get().copied()
    }

    /// Records the duration of a statement, and its error if it failed.
    pub(crate) fn took(&self, query: Query, took: Duration, error: Option<&Outage>) {
        if let Some(observer) = &self.observer {
            observer.answered(query, took, error.map(Outage::class));
        }
    }

    /// Records a committed write.
    pub(crate) fn written(&self) {
        self.writes.succeeded();
        if let Some(observer) = &self.observer {
            observer.writable(true);
        }
    }

    /// Records a failed transaction. A rejected statement does not affect the health of the
    /// database.
    pub(crate) fn failed(&self, outage: &Outage, was_writing: bool) {
        if outage.is_rejection() {
            return;
        }
        if outage.requires_new_connections() {
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
