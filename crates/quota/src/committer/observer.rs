//! Observes commits.

use std::time::Duration;

use crate::{Operation, Posted};

/// Observes transactions of operations, for metrics and notifications.
pub trait CommitObserver: Send + Sync {
    /// Called after each transaction, before callers get their responses. It must not block.
    fn committed(&self, commit: &Commit<'_>);
}

/// A finished transaction.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Operations of the transaction.
    pub operations: &'a [Operation],
    /// The ledger's answers in the same order; `None` if the transaction failed.
    pub posted: Option<&'a [Posted]>,
    /// Duration of the transaction.
    pub elapsed: Duration,
}

// === impl Commit ===

impl Commit<'_> {
    /// Returns `true` if the transaction recorded events.
    pub fn has_events(&self) -> bool {
        self.posted.into_iter().flatten().any(|posted| posted.has_event)
    }
}
