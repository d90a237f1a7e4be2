use std::{collections::HashSet, sync::atomic::AtomicUsize};

use headgate_quota::{LoggedEvent, Subject};
use headgate_resilience::Backoff;
use tokio::time::Instant;

use crate::batch::BatchOutcome;

/// One pass through the log, from the oldest undelivered event of a sink to the newest. A subject
/// with a rejected or failed event is blocked until the next pass; others are not.
#[derive(Debug, Default)]
pub(crate) struct LogPass {
    /// Sequence number of the last event it has read.
    through: i64,
    blocked: HashSet<Subject>,
    /// See [`batch::deliver`](crate::batch::deliver).
    failed_in_a_row: AtomicUsize,
    /// Time at which the next pass begins, for blocked subjects.
    retry_at: Option<Instant>,
    backoff: Backoff,
}

/// Maximum number of blocked subjects in a pass; it ends there.
const MAX_BLOCKED: usize = 10_000;

impl LogPass {
    /// Returns the sequence number after which it continues.
    pub(crate) const fn through(&self) -> i64 {
        self.through
    }

    /// Returns the subjects to skip.
    pub(crate) const fn blocked(&self) -> &HashSet<Subject> {
        &self.blocked
    }

    /// Returns the number of failures since the last success.
    pub(crate) const fn failed_in_a_row(&self) -> &AtomicUsize {
        &self.failed_in_a_row
    }

    /// Returns true if no more subjects can be blocked.
    pub(crate) fn is_full(&self) -> bool {
        self.blocked.len() >= MAX_BLOCKED
    }

    /// Returns true if an event was rejected in this pass or the last one.
    pub(crate) const fn is_failing(&self) -> bool {
        self.backoff.is_failing()
    }

    /// Continues after `batch`.
    pub(crate) fn advance(&mut self, batch: &[LoggedEvent], outcome: BatchOutcome) {
        self.through = batch.last().map_or(self.through, |last| last.seq);
        self.blocked.extend(outcome.failures.into_iter().map(|(subject, _)| subject));
    }

    /// Returns the time of the next pass, at the end of the log, if a subject is blocked. New
    /// events are delivered until then.
    pub(crate) fn retry_at(&mut self) -> Option<Instant> {
        if self.blocked.is_empty() {
            *self = Self::default();
            return None;
        }
        let retry_at = self.retry_at.unwrap_or_else(|| Instant::now() + self.backoff.next_pause());
        self.retry_at = Some(retry_at);
        Some(retry_at)
    }

    /// Begins a new pass. The backoff is kept: rejected events wait longer each time.
    pub(crate) fn restart(&mut self) {
        let backoff = std::mem::take(&mut self.backoff);
        *self = Self { backoff, ..Self::default() };
    }
}
