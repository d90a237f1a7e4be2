//! Counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a [`LeasedStore`](crate::LeasedStore) has done since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Calls to the store that ask for admission.
    pub calls: u64,
    /// Calls to the store that give units back, each for many subjects.
    pub return_calls: u64,
    /// Batches that were admitted without a call.
    pub admitted_locally: u64,
    /// Batches that were denied without a call.
    pub denied_locally: u64,
    /// Units that the store granted in advance.
    pub granted: u64,
    /// Units that went back to the store.
    pub given_back: u64,
    /// Units that were neither used nor accepted back, and so are missing until they return by
    /// themselves.
    pub lost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) return_calls: AtomicU64,
    pub(crate) admitted_locally: AtomicU64,
    pub(crate) denied_locally: AtomicU64,
    pub(crate) granted: AtomicU64,
    pub(crate) given_back: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Stats {
        Stats {
            calls: self.calls.load(Relaxed),
            return_calls: self.return_calls.load(Relaxed),
            admitted_locally: self.admitted_locally.load(Relaxed),
            denied_locally: self.denied_locally.load(Relaxed),
            granted: self.granted.load(Relaxed),
            given_back: self.given_back.load(Relaxed),
            lost: self.lost.load(Relaxed),
        }
    }
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Relaxed);
}
