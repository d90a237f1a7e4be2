//! Many limits' answers folded into one.

use std::time::Duration;

use crate::{Degraded, Outcome, Timestamp};

/// Whether the request may go on, in the words of the limit that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether every limit had room, and so whether anything was taken.
    pub allowed: bool,
    /// The most the subject can have at once.
    pub limit: u64,
    /// What is left after this decision.
    pub remaining: u64,
    /// How long until the subject has all of its allowance again.
    pub reset_after: Duration,
    /// How long until the same request is admitted; zero when allowed.
    pub retry_after: Duration,
    /// The store's time of the decision.
    pub at: Timestamp,
    /// Set when a store could not answer: what decided instead, and why.
    pub degraded: Option<Degraded>,
    /// Which of the request's limits decided, by its place in the batch.
    pub rule: usize,
}

impl Decision {
    /// Folds the answers to a batch.
    ///
    /// A denial speaks for the limit that keeps the request waiting longest; an
    /// admission for the one with the least left.
    ///
    /// # Panics
    ///
    /// When there is no answer: a batch holds at least one check.
    pub fn fold(outcomes: &[Outcome]) -> Self {
        let allowed = outcomes.iter().all(|outcome| outcome.allowed);
        let mut rule = 0;
        for (i, outcome) in outcomes.iter().enumerate().skip(1) {
            let held = &outcomes[rule];
            let decides = if allowed {
                (outcome.remaining, held.reset_after) < (held.remaining, outcome.reset_after)
            } else {
                (outcome.allowed, held.retry_after) < (held.allowed, outcome.retry_after)
            };
            if decides {
                rule = i;
            }
        }
        let decider = &outcomes[rule];
        Self {
            allowed,
            limit: decider.limit,
            remaining: decider.remaining,
            reset_after: decider.reset_after,
            retry_after: decider.retry_after,
            at: decider.at,
            degraded: if allowed {
                outcomes.iter().find_map(|outcome| outcome.degraded)
            } else {
                decider.degraded
            },
            rule,
        }
    }

    /// Whole seconds for a `Retry-After` field: rounded up, at least 1 on a denial.
    pub const fn retry_after_secs(&self) -> u64 {
        if self.allowed {
            return 0;
        }
        let secs = ceil_secs(self.retry_after);
        if secs == 0 { 1 } else { secs }
    }

    /// Whole seconds until the allowance is complete, rounded up.
    pub const fn reset_after_secs(&self) -> u64 {
        ceil_secs(self.reset_after)
    }

    /// The Unix second at which the allowance is complete, rounded up.
    pub fn reset_at_secs(&self) -> u64 {
        (self.at + self.reset_after).as_secs_ceil()
    }
}

impl From<Outcome> for Decision {
    fn from(outcome: Outcome) -> Self {
        Self {
            allowed: outcome.allowed,
            limit: outcome.limit,
            remaining: outcome.remaining,
            reset_after: outcome.reset_after,
            retry_after: outcome.retry_after,
            at: outcome.at,
            degraded: outcome.degraded,
            rule: 0,
        }
    }
}

/// Whole seconds, rounded up, as fields that speak of the future tell them.
pub const fn ceil_secs(duration: Duration) -> u64 {
    duration.as_secs() + (duration.subsec_nanos() > 0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(allowed: bool, remaining: u64, retry_after: u64) -> Outcome {
        Outcome {
            allowed,
            limit: 10,
            remaining,
            reset_after: Duration::from_secs(60),
            retry_after: Duration::from_micros(retry_after),
            at: Timestamp::from_micros(1_500_000),
            degraded: None,
        }
    }

    #[test]
    fn the_longest_wait_speaks_for_a_denial() {
        let all = [outcome(true, 0, 0), outcome(false, 3, 500), outcome(false, 1, 700)];
        let decision = Decision::fold(&all);
        assert!(!decision.allowed);
        assert_eq!((decision.rule, decision.remaining), (2, 1));
        assert_eq!(decision.retry_after, Duration::from_micros(700));
    }

    #[test]
    fn the_least_left_speaks_for_an_admission() {
        let all = [outcome(true, 5, 0), outcome(true, 2, 0), outcome(true, 9, 0)];
        let decision = Decision::fold(&all);
        assert!(decision.allowed);
        assert_eq!((decision.rule, decision.remaining), (1, 2));
    }

    #[test]
    fn of_two_that_are_alike_the_first_speaks() {
        let denied = [outcome(false, 0, 700), outcome(false, 0, 700)];
        assert_eq!(Decision::fold(&denied).rule, 0);
        let admitted = [outcome(true, 2, 0), outcome(true, 2, 0)];
        assert_eq!(Decision::fold(&admitted).rule, 0);
        // With as much left, the one that takes longer to be whole again.
        let slower = Outcome { reset_after: Duration::from_secs(61), ..outcome(true, 2, 0) };
        assert_eq!(Decision::fold(&[outcome(true, 2, 0), slower]).rule, 1);
    }

    #[test]
    fn whole_seconds_round_up_and_a_denial_waits_at_least_one() {
        let denied = Decision::fold(&[outcome(false, 0, 0)]);
        assert_eq!(denied.retry_after_secs(), 1);
        assert_eq!(Decision::fold(&[outcome(false, 0, 1_000_001)]).retry_after_secs(), 2);
        assert_eq!(Decision::fold(&[outcome(true, 1, 0)]).retry_after_secs(), 0);
        assert_eq!(denied.reset_at_secs(), 62);
        assert_eq!(denied.reset_after_secs(), 60);
    }
}
