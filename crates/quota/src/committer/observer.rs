//! Observes commits.

use std::time::Duration;

use crate::{Increment, IncrementOutcome, IncrementResult};

/// Observes transactions of increments, for metrics and notifications.
pub trait CommitObserver: Send + Sync {
    /// Called after each transaction, before callers get their responses. It must not block.
    fn committed(&self, commit: &Commit<'_>);
}

/// A finished transaction.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    /// Increments of the transaction.
    pub increments: &'a [Increment],
    /// Their results in the same order; `None` if the transaction failed.
    pub results: Option<&'a [IncrementResult]>,
    /// Duration of the transaction.
    pub elapsed: Duration,
}

// === impl Commit ===

impl Commit<'_> {
    /// Returns `true` if the transaction may have recorded events. Events that a changed limit
    /// causes are not detected.
    pub fn may_have_events(&self) -> bool {
        let results = self.results.into_iter().flatten();
        self.increments
            .iter()
            .zip(results)
            .any(|(increment, result)| result.may_have_event(increment.amount))
    }
}

// === impl IncrementResult ===

impl IncrementResult {
    /// Returns `true` if an increment of `amount` may have recorded an event. Thresholds are whole
    /// percentages, so that only an increment that passes one can reach any; a denial below the
    /// limit may be the first.
    fn may_have_event(&self, amount: u64) -> bool {
        let percent = |used: u64| u128::from(used) * 100 / u128::from(self.limit.max(1));
        match self.outcome {
            IncrementOutcome::Charged => {
                percent(self.used) != percent(self.used.saturating_sub(amount))
            }
            IncrementOutcome::Denied => self.used < self.limit,
            IncrementOutcome::Replayed
            | IncrementOutcome::ExceedsLimit
            | IncrementOutcome::OutOfPeriod
            | IncrementOutcome::Disabled
            | IncrementOutcome::Conflict
            | IncrementOutcome::NotFound => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_a_percentage_or_a_first_denial_may_record_an_event() {
        let may_have_event = |outcome, amount, used, limit| {
            IncrementResult { outcome, used, limit }.may_have_event(amount)
        };
        assert!(may_have_event(IncrementOutcome::Charged, 1, 8000, 10_000));
        assert!(!may_have_event(IncrementOutcome::Charged, 1, 8001, 10_000));
        assert!(may_have_event(IncrementOutcome::Charged, 100, 8001, 10_000));
        assert!(may_have_event(IncrementOutcome::Charged, 1, 10_000, 10_000));
        assert!(may_have_event(IncrementOutcome::Charged, 1, 1, 1));
        assert!(may_have_event(IncrementOutcome::Denied, 5, 8, 10));
        assert!(!may_have_event(IncrementOutcome::Denied, 1, 10, 10));
        assert!(!may_have_event(IncrementOutcome::ExceedsLimit, 11, 8, 10));
        assert!(!may_have_event(IncrementOutcome::Replayed, 1, 10, 10));
    }
}
