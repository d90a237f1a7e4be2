//! A denial that is repeated without asking the store.

use headgate::{Check, Outcome};

use crate::{answer::CallTimes, holding::as_micros};

/// A denial by the store. Until it ends, its cost is not admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Denial {
    pub(crate) cost: u64,
    pub(crate) remaining: u64,
    pub(crate) until: u64,
    pub(crate) retry_at: u64,
}

impl Denial {
    /// What an answer says about the next calls. It is not repeated when the cost may be admitted,
    /// and its `retry_after` is never too short.
    pub(crate) fn learned(
        check: &Check<'_>,
        outcome: &Outcome,
        CallTimes { sent, arrived }: CallTimes,
        hold: u64,
    ) -> Option<Self> {
        let (cost, wait) = denied_for(check, outcome, hold)?;
        let retry_at = arrived.saturating_add(wait);
        let until = sent.saturating_add(wait.min(hold));
        Some(Self { cost, remaining: outcome.remaining, until, retry_at })
    }
}

/// The cost that the store will not admit, and for how long, in microseconds.
fn denied_for(check: &Check<'_>, outcome: &Outcome, hold: u64) -> Option<(u64, u64)> {
    let cost = check.cost().get();
    if !outcome.allowed {
        let wait =
            as_micros(outcome.retry_after).max(check.extra().map_or(0, |_| pause(outcome, hold)));
        return (outcome.remaining < cost).then_some((cost, wait));
    }
    // If the store granted all it had, it hardly has more when that is used.
    let granted = outcome.grant().map_or(0, |grant| grant.units);
    let took_all = check.extra().is_some_and(|extra| extra.units() > granted);
    (took_all && outcome.remaining == 0).then(|| (1, pause(outcome, hold)))
}

/// Shortest time between two calls for a leased subject that is used up, in microseconds.
///
/// A fast limit returns single units, and would be asked for each of them. A quarter of the hold
/// later, some have come together. An eighth of the time in which all return is not enough to lose
/// any to a full bucket.
fn pause(outcome: &Outcome, hold: u64) -> u64 {
    (hold / 4).min(as_micros(outcome.reset_after) / 8)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headgate::{Cost, Extra, Grant, Key, Limit, Timestamp};

    use super::*;

    const HOLD: Duration = Duration::from_millis(200);
    const TIMES: CallTimes = CallTimes { sent: 1_000_000, arrived: 1_030_000 };
    const AT: Timestamp = Timestamp::from_micros(50_000_000);

    /// What is learned from an answer to a check of 5 units that may lease 10.
    fn learned(outcome: &Outcome, leases: bool) -> Option<Denial> {
        let limit = Limit::token_bucket(100, Duration::from_secs(1)).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &limit, Cost::new(5).unwrap()).unwrap();
        let check = if leases { check.with_extra(Extra::new(10, HOLD)) } else { check };
        Denial::learned(&check, outcome, TIMES, as_micros(HOLD))
    }

    fn denial(remaining: u64, reset_after: Duration) -> Outcome {
        Outcome::denial(100, remaining, reset_after, Duration::from_millis(10), AT)
    }

    fn admission(remaining: u64, granted: u64) -> Outcome {
        let grant = Grant { units: granted, until: AT.plus(as_micros(HOLD)) };
        Outcome::admission(100, remaining, Duration::from_millis(80), AT).with_grant(Some(grant))
    }

    #[test]
    fn a_denial_is_remembered_only_if_there_were_too_few_units() {
        let reset_after = Duration::from_secs(1);
        let learned = |remaining| learned(&denial(remaining, reset_after), false);
        let denial = learned(4).unwrap();
        assert_eq!((denial.cost, denial.remaining), (5, 4));
        assert_eq!((denial.until, denial.retry_at), (1_010_000, 1_040_000));
        assert!(learned(5).is_none());
    }

    #[test]
    fn a_leased_subject_waits_for_a_quarter_of_the_hold_or_an_eighth_of_the_reset() {
        let waits = [80, 160, 1_000, 3_600_000].map(|reset_after| {
            let denial = denial(4, Duration::from_millis(reset_after));
            learned(&denial, true).unwrap().until - TIMES.sent
        });
        assert_eq!(waits, [10_000, 20_000, 50_000, 50_000], "the store's wait is 10 ms");
    }

    #[test]
    fn only_a_store_that_granted_its_last_units_is_not_asked_for_a_while() {
        let denial = learned(&admission(0, 9), true).unwrap();
        assert_eq!((denial.cost, denial.until), (1, 1_010_000));
        assert!(learned(&admission(0, 10), true).is_none(), "it granted all that was asked for");
        assert!(learned(&admission(1, 9), true).is_none(), "it has more");
        assert!(learned(&admission(0, 0), false).is_none(), "nothing was asked for");
    }
}
