use std::collections::HashSet;

use headgate_quota::{LoggedEvent, Subject};
use headgate_resilience::Backoff;
use tokio::time::Instant;

use super::round::Round;

/// One way through the log, from the oldest event that a sink does not have to the newest. A subject one
/// of whose events is refused is held up until the next pass; the others are not.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// Up to where it came.
    through: i64,
    held_up: HashSet<Subject>,
    /// When those who are held up are tried again.
    again_at: Option<Instant>,
    backoff: Backoff,
}

/// The most subjects that are held up in a pass: it ends there.
const MAX_HELD_UP: usize = 10_000;

impl Pass {
    /// From where it goes on.
    pub(super) const fn through(&self) -> i64 {
        self.through
    }

    /// Of whom nothing is to be tried.
    pub(super) const fn held_up(&self) -> &HashSet<Subject> {
        &self.held_up
    }

    /// Whether there is room for another subject.
    pub(super) fn is_full(&self) -> bool {
        self.held_up.len() >= MAX_HELD_UP
    }

    /// Whether something was refused, now or the last time.
    pub(super) const fn is_failing(&self) -> bool {
        self.backoff.is_failing()
    }

    /// Notes what became of a batch.
    pub(super) fn came_through(&mut self, batch: &[LoggedEvent], round: Round) {
        self.through = batch.last().map_or(self.through, |last| last.seq);
        self.held_up.extend(round.failures.into_iter().map(|(subject, _)| subject));
    }

    /// The end of the log is reached: when to begin again, if anybody is held up. What is new may be
    /// delivered until then.
    pub(super) fn again_at(&mut self) -> Option<Instant> {
        if self.held_up.is_empty() {
            *self = Self::default();
            return None;
        }
        let again_at = self.again_at.unwrap_or_else(|| Instant::now() + self.backoff.next_pause());
        self.again_at = Some(again_at);
        Some(again_at)
    }

    /// Begins again with the oldest; whoever keeps being refused waits longer each time.
    pub(super) fn begin(&mut self) {
        let backoff = std::mem::take(&mut self.backoff);
        *self = Self { backoff, ..Self::default() };
    }
}
