//! A store under test.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headgate::{Limit, Store, Timestamp};

/// A store under test, and what the suite may do to it.
pub trait Fixture {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Sets the store's clock; `false` when it cannot be set.
    fn set_time(&self, _now: Timestamp) -> bool {
        false
    }

    /// Whether the store claims to count by this limit. What it does not claim it must refuse.
    fn claims(&self, _limit: &Limit) -> bool {
        true
    }

    /// Whether one place decides a batch at one moment: the nodes of a cluster do not.
    fn decides_at_once(&self) -> bool {
        true
    }

    /// What keys begin with, so that those of one batch can share a node.
    fn key_prefix(&self) -> &'static str {
        ""
    }
}

/// A number for each scenario, so that none meets another's keys.
pub(crate) fn next_scenario() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}
