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
