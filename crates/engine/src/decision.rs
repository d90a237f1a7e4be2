//! The answers to a batch, folded into one.

use std::time::Duration;

use crate::{Degraded, Outcome, Timestamp};

/// The answer to a request: that of the limit that decided it.
///
/// A denial carries the values of the limit with the longest wait, an admission those of the limit
/// with the fewest units left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// `true` if every limit admits the request. Otherwise nothing was taken.
    pub allowed: bool,
    /// Maximum number of units available at once.
    pub limit: u64,
    /// Units left after this decision.
    pub remaining: u64,
    /// Time until all units are available again.
    pub reset_after: Duration,
    /// Time until the same request is admitted; zero if it was.
    pub retry_after: Duration,
    /// Time of the decision, by the store's clock.
    pub at: Timestamp,
    /// Source and cause of the decision, if the store could not answer.
    pub degraded: Option<Degraded>,
    /// `true` if at least one limit decided without asking the store: see [`Outcome::leased`].
    pub leased: bool,
    /// Index of the deciding limit in the batch.
    pub decided_by: usize,
}

impl Decision {
    /// Returns `true` if units granted in advance admitted it. A denial that the store gave a moment
    /// ago is repeated without asking, too, whether the limit is leased or not.
    pub const fn is_from_lease(&self) -> bool {
        self.allowed && self.leased
    }

    /// Folds the answers to a batch into one.
    ///
    /// Among equals, the first one decides.
    ///
    /// # Panics
    ///
    /// If `outcomes` is empty: a batch has at least one check.
    pub fn fold(outcomes: &[Outcome]) -> Self {
        let allowed = outcomes.iter().all(|outcome| outcome.allowed);
        let mut decided_by = 0;
        for (i, outcome) in outcomes.iter().enumerate().skip(1) {
            let held = &outcomes[decided_by];
            let decides = if allowed {
                (outcome.remaining, held.reset_after) < (held.remaining, outcome.reset_after)
            } else {
                (outcome.allowed, held.retry_after) < (held.allowed, outcome.retry_after)
            };
            if decides {
                decided_by = i;
            }
        }
        let decider = outcomes[decided_by];
        let degraded = if allowed {
            outcomes.iter().find_map(|outcome| outcome.degraded)
        } else {
            decider.degraded
        };
        let leased = outcomes.iter().any(|outcome| outcome.leased);
        Self { degraded, leased, decided_by, ..decider.into() }
    }

    /// Seconds for a `Retry-After` header: rounded up, at least 1 for a denial.
    pub const fn retry_after_secs(&self) -> u64 {
        if self.allowed {
            return 0;
        }
        let secs = ceil_secs(self.retry_after);
        if secs == 0 { 1 } else { secs }
    }

    /// Seconds until all units are available again, rounded up.
    pub const fn reset_after_secs(&self) -> u64 {
        ceil_secs(self.reset_after)
    }

    /// Unix time in seconds at which all units are available again, rounded up.
    pub fn reset_at_secs(&self) -> u64 {
        (self.at + self.reset_after).as_secs_ceil()
    }
}

impl From<Outcome> for Decision {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        Self {
            allowed: outcome.allowed,
            limit: outcome.limit,
            remaining: outcome.remaining,
            reset_after: outcome.reset_after,
            retry_after: outcome.retry_after,
            at: outcome.at,
            degraded: outcome.degraded,
            leased: outcome.leased,
            decided_by: 0,
        }
    }
}

/// A duration in whole seconds, rounded up.
pub const fn ceil_secs(duration: Duration) -> u64 {
    duration.as_secs() + (duration.subsec_nanos() > 0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FailCause, FailMode, degraded::Source, outcome::Detail};

    fn outcome(allowed: bool, remaining: u64, retry_after: u64) -> Outcome {
        Outcome {
            allowed,
            limit: 10,
            remaining,
            reset_after: Duration::from_secs(60),
            retry_after: Duration::from_micros(retry_after),
            at: Timestamp::from_micros(1_500_000),
            degraded: None,
            detail: Detail::None,
            leased: false,
        }
    }

    #[test]
    fn the_longest_wait_decides_a_denial() {
        let all = [outcome(true, 0, 0), outcome(false, 3, 500), outcome(false, 1, 700)];
        let decision = Decision::fold(&all);
        assert!(!decision.allowed);
        assert_eq!((decision.decided_by, decision.remaining), (2, 1));
        assert_eq!(decision.retry_after, Duration::from_micros(700));
    }

    #[test]
    fn the_fewest_units_left_decide_an_admission() {
        let all = [outcome(true, 5, 0), outcome(true, 2, 0), outcome(true, 9, 0)];
        let decision = Decision::fold(&all);
        assert!(decision.allowed);
        assert_eq!((decision.decided_by, decision.remaining), (1, 2));
    }

    #[test]
    fn the_first_of_equals_decides() {
        let denied = [outcome(false, 0, 700), outcome(false, 0, 700)];
        assert_eq!(Decision::fold(&denied).decided_by, 0);
        let admitted = [outcome(true, 2, 0), outcome(true, 2, 0)];
        assert_eq!(Decision::fold(&admitted).decided_by, 0);
        // With equally many units left, the one that takes longer to reset.
        let slower = Outcome { reset_after: Duration::from_secs(61), ..outcome(true, 2, 0) };
        assert_eq!(Decision::fold(&[outcome(true, 2, 0), slower]).decided_by, 1);
    }

    #[test]
    fn an_admission_is_degraded_if_any_limit_could_not_answer() {
        let source = Source::FailMode(FailMode::Open);
        let degraded = Some(Degraded { source, cause: FailCause::Timeout });
        let unanswered = Outcome { degraded, ..outcome(true, 9, 0) };
        let decision = Decision::fold(&[outcome(true, 2, 0), unanswered]);
        assert_eq!((decision.decided_by, decision.degraded), (0, degraded));
        // A denial is, if the limit that denies could not answer.
        let denial = Decision::fold(&[outcome(false, 0, 700), unanswered]);
        assert_eq!((denial.decided_by, denial.degraded), (0, None));
    }

    #[test]
    fn an_admission_is_from_a_lease_if_any_limit_is() {
        let leased = |outcome| Outcome { leased: true, ..outcome };
        let admitted = [outcome(true, 2, 0), leased(outcome(true, 9, 0))];
        assert!(Decision::fold(&admitted).is_from_lease());
        assert!(!Decision::fold(&admitted[..1]).is_from_lease());
        let denied = Decision::fold(&[leased(outcome(false, 0, 700))]);
        assert!(denied.leased && !denied.is_from_lease());
    }

    #[test]
    fn seconds_round_up_and_a_denial_waits_at_least_one() {
        let denied = Decision::fold(&[outcome(false, 0, 0)]);
        assert_eq!(denied.retry_after_secs(), 1);
        assert_eq!(Decision::fold(&[outcome(false, 0, 1_000_001)]).retry_after_secs(), 2);
        assert_eq!(Decision::fold(&[outcome(true, 1, 0)]).retry_after_secs(), 0);
        assert_eq!(denied.reset_at_secs(), 62);
        assert_eq!(denied.reset_after_secs(), 60);
    }
}
