//! A store under test.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use headgate::{Limit, Store, Timestamp};

/// A store under test, and its abilities.
pub trait Fixture {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Sets the store's clock; returns `false` if it cannot be set.
    fn set_time(&self, _now: Timestamp) -> bool {
        false
    }

    /// Whether the store supports this limit. It must reject limits that it does not support.
    fn claims(&self, _limit: &Limit) -> bool {
        true
    }

    /// Whether a batch is decided by one clock at one point in time: in a cluster it is not.
    fn decides_at_once(&self) -> bool {
        true
    }

    /// Prefix of all keys, so that those of one batch can share a node.
    fn key_prefix(&self) -> &'static str {
        ""
    }
}

/// A unique number for each scenario, so that scenarios do not share keys.
pub(crate) fn next_scenario() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Relaxed)
}
