//! What clients saw.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};

/// What all clients saw, in units. Clones count together.
#[derive(Clone, Default)]
pub(super) struct Tally(Arc<Counts>);

#[derive(Default)]
struct Counts {
    acknowledged: AtomicU64,
    /// Requests that were sent completely, whose client gave up without an answer.
    unanswered: AtomicU64,
    refused: AtomicU64,
    /// Requests that were sent again under the same id.
    repeated: AtomicU64,
    stopped: AtomicBool,
}

impl Tally {
    pub(super) fn acknowledge(&self, units: u64) {
        self.0.acknowledged.fetch_add(units, SeqCst);
    }

    pub(super) fn lose(&self, units: u64) {
        self.0.unanswered.fetch_add(units, SeqCst);
    }

    pub(super) fn refuse(&self) {
        self.0.refused.fetch_add(1, SeqCst);
    }

    pub(super) fn repeat(&self) {
        self.0.repeated.fetch_add(1, SeqCst);
    }

    pub(super) fn stop(&self) {
        self.0.stopped.store(true, SeqCst);
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.0.acknowledged.load(SeqCst)
    }

    pub(super) fn unanswered(&self) -> u64 {
        self.0.unanswered.load(SeqCst)
    }

    pub(super) fn refused(&self) -> u64 {
        self.0.refused.load(SeqCst)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.stopped.load(SeqCst)
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeated = self.0.repeated.load(SeqCst);
        write!(
            f,
            "acknowledged {}, unanswered {}, refused {} times, repeated {repeated} times",
            self.acknowledged(),
            self.unanswered(),
            self.refused(),
        )
    }
}
