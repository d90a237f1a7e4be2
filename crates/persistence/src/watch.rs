//! What is learned from each answer of the database.

use std::{sync::Arc, time::Duration};

use crate::{
    cutoff::Cutoff,
    outage::Outage,
    query::{Query, QueryObserver},
    writes::Writes,
};

/// Receives how long statements take, if anybody wants to know.
pub(crate) type Observer = Option<Arc<dyn QueryObserver>>;

/// Learns from each answer of the database.
#[derive(Clone)]
pub(crate) struct Watch {
    pub(crate) observer: Observer,
    pub(crate) writes: Writes,
    pub(crate) cutoff: Cutoff,
}

// === impl Watch ===

impl Watch {
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
