//! Metrics of commits, and notification of new events.

use headgate_quota::{Commit, CommitObserver};

use super::QuotaMetrics;
use crate::events::Bell;

/// Counts commits, and wakes the publishers of events when one may have recorded an event.
pub(super) struct CommitMonitor {
    pub(super) metrics: QuotaMetrics,
    pub(super) bell: Bell,
}

impl CommitObserver for CommitMonitor {
    fn committed(&self, commit: &Commit<'_>) {
        let Commit { increments, results, elapsed } = commit;
        self.metrics.committed(increments.len(), *elapsed, results.is_some());
        if commit.may_have_events() {
            self.bell.ring();
        }
    }
}
