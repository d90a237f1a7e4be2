//! Counts of decisions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of checks that a rule admitted and denied. Snapshots share it: a changed rule keeps it.
#[derive(Debug, Default)]
pub struct Tally {
    allowed: AtomicU64,
    denied: AtomicU64,
}

impl Tally {
    /// Counts one decision.
    pub fn count(&self, allowed: bool) {
        let counter = if allowed { &self.allowed } else { &self.denied };
        counter.fetch_add(1, Relaxed);
    }

    /// Returns the number of admitted checks.
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Relaxed)
    }

    /// Returns the number of denied checks.
    pub fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
    }
}
