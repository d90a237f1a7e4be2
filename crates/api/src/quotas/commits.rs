//! Metrics of commits, and notification of new events.

use headgate_events::NewEvents;
use headgate_quota::{Commit, CommitObserver};

use super::QuotaMetrics;

/// Counts commits, and wakes the publishers of events when one has recorded an event.
pub(super) struct CommitMonitor {
    pub(super) metrics: QuotaMetrics,
    pub(super) new_events: NewEvents,
}

impl CommitObserver for CommitMonitor {
    fn committed(&self, commit: &Commit<'_>) {
        let Commit { operations, posted, elapsed } = commit;
        self.metrics.committed(operations.len(), *elapsed, posted.is_some());
        if commit.has_events() {
            self.new_events.notify();
        }
    }
}
