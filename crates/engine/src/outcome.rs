//! One limit's answer.

use std::time::Duration;

use smallvec::SmallVec;

use crate::{Cost, Degraded, Timestamp, algorithm::Meter};

/// What one limit says to one cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether this limit has room. In a batch, all must have for anything to be taken.
    pub allowed: bool,
    /// The most the subject can have at once.
    pub limit: u64,
    /// What is left after this decision.
    pub remaining: u64,
    /// How long until the subject has all of its allowance again.
    pub reset_after: Duration,
    /// How long until the same cost is admitted; zero when allowed.
    pub retry_after: Duration,
    /// The store's time of the decision.
    pub at: Timestamp,
    /// Set when the store could not answer: what decided instead, and why.
    pub degraded: Option<Degraded>,
}

/// The answers to a batch, in its order. One answer needs no allocation.
pub type Outcomes = SmallVec<[Outcome; 2]>;

impl Outcome {
    /// The answer that a subject's state after the decision gives.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a fifth of a decision is calling the parts of it")]
    pub fn of<M: Meter>(
        meter: &M,
        state: &M::State,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Self {
        let retry_after = if allowed {
            Duration::ZERO
        } else {
            Duration::from_micros(meter.retry_after(state, cost, now))
        };
        Self {
            allowed,
            limit: meter.capacity(),
            remaining: meter.remaining(state, now),
            reset_after: Duration::from_micros(meter.reset_after(state, now)),
            retry_after,
            at: now,
            degraded: None,
        }
    }
}
