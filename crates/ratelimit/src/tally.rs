//! How often a rule admitted and denied.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often a rule admitted and denied. It outlives snapshots: a rule that changes keeps counting.
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

    /// How often it admitted.
    pub fn allowed(&self) -> u64 {
        self.allowed.load(Relaxed)
    }

    /// How often it denied.
    pub fn denied(&self) -> u64 {
        self.denied.load(Relaxed)
    }
}
