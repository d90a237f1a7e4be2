use std::{sync::atomic::AtomicUsize, time::Duration};

use headgate_quota::{LoggedEvent, Subject};
use headgate_resilience::Backoff;
use tokio::time::Instant;

use crate::{batch::BatchOutcome, blocked::BlockedSubjects};

/// One pass through the log, from the oldest undelivered event of a sink to the newest. A subject
/// with a rejected or failed event is blocked until a later pass; others are not.
#[derive(Debug)]
pub(crate) struct LogPass {
    /// Sequence number of the last event it has read.
    through: i64,
    /// Subjects that were not due then are skipped, even if they become due meanwhile: an earlier
    /// event of theirs was skipped, too.
    began: Instant,
    blocked: BlockedSubjects,
    /// See [`batch::deliver`](crate::batch::deliver).
    failed_in_a_row: AtomicUsize,
    /// Time at which the next pass begins, for blocked subjects.
    retry_at: Option<Instant>,
    backoff: Backoff,
}

/// Maximum time until the next pass when a subject is newly blocked; others may wait for longer.
const MAX_PAUSE: Duration = Duration::from_secs(30);

impl LogPass {
    /// Returns the sequence number after which it continues.
    pub(crate) const fn through(&self) -> i64 {
        self.through
    }

    /// Returns true if the events of `subject` are to be skipped.
    pub(crate) fn skips(&self, subject: &Subject) -> bool {
        self.blocked.contains(subject, self.began)
    }

    /// Returns true if events of `subject` have failed often.
    pub(crate) fn is_persistent(&self, subject: &Subject) -> bool {
        self.blocked.is_persistent(subject)
    }

    /// Returns the number of failures since the last success.
    pub(crate) const fn failed_in_a_row(&self) -> &AtomicUsize {
        &self.failed_in_a_row
    }

    /// Returns true if no more subjects can be blocked.
    pub(crate) fn is_full(&self) -> bool {
        self.blocked.is_full()
    }

    /// Returns true if an event was rejected in this pass or the last one.
    pub(crate) fn is_failing(&self) -> bool {
        !self.blocked.is_empty() || self.backoff.is_failing()
    }

    /// Continues after `batch`.
    pub(crate) fn advance(&mut self, batch: &[LoggedEvent], outcome: &BatchOutcome) {
        self.through = batch.last().map_or(self.through, |last| last.seq);
        let now = Instant::now();
        for (subject, _) in &outcome.failures {
            self.blocked.insert(subject, now);
            self.retry_at = self.retry_at.map(|at| at.min(now + MAX_PAUSE));
        }
        for LoggedEvent { event, .. } in batch {
            if !self.skips(&event.subject) {
                self.blocked.remove(&event.subject);
            }
        }
    }

    /// Returns the time of the next pass, at the end of the log, if a subject is blocked. New
    /// events are delivered until then.
    pub(crate) fn retry_at(&mut self) -> Option<Instant> {
        if self.retry_at.is_none() {
            // No event of theirs was found: they were deleted.
            self.blocked.remove_due(self.began);
            self.retry_at = self.blocked.first_due().map(|due| {
                let pause = self.backoff.next_pause();
                due.max(Instant::now() + pause)
            });
        }
        if self.retry_at.is_none() {
            *self = Self::default();
        }
        self.retry_at
    }

    /// Begins a new pass. Blocked subjects and the backoff are kept: rejected events wait longer
    /// each time.
    pub(crate) fn restart(&mut self) {
        let Self { blocked, backoff, .. } = std::mem::take(self);
        *self = Self { blocked, backoff, ..Self::default() };
    }
}

impl Default for LogPass {
    fn default() -> Self {
        Self {
            through: 0,
            began: Instant::now(),
            blocked: BlockedSubjects::default(),
            failed_in_a_row: AtomicUsize::new(0),
            retry_at: None,
            backoff: Backoff::default(),
        }
    }
}
