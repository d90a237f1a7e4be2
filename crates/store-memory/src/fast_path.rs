//! The results of the fast path, which decides one check under one lock.

use std::time::Duration;

use headgate::{Cost, Outcome, Timestamp, algorithm::Meter};

use crate::{
    fingerprint::Fingerprint, lock::Guard, overflow::Overflow, shard::Shard, slot::Compact,
};

/// A decision on a subject, and the subject's state after it. The outcome is computed from it once
/// the lock is released.
pub(crate) struct Decided<S> {
    pub(crate) state: S,
    pub(crate) allowed: bool,
    pub(crate) now: Timestamp,
}

/// A subject that is not in the table, with its shard, which is still locked.
pub(crate) struct NewSubject<'s> {
    pub(crate) overflow: &'s Overflow,
    pub(crate) shard: Guard<'s, Shard>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) now: Timestamp,
}

impl<S> Decided<S> {
    #[inline]
    pub(crate) const fn is_allowed(&self) -> bool {
        self.allowed
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "calls are a fifth of the cost of a decision")]
    pub(crate) fn outcome<M: Meter<State = S>>(&self, meter: &M, cost: Cost) -> Outcome {
        let Self { state, allowed, now } = self;
        if *allowed || cost != Cost::ONE {
            return Outcome::of(meter, state, cost, *now, *allowed);
        }
        // If a single unit is denied, none is left: there is nothing to compute.
        let reset_after = Duration::from_micros(meter.reset_after(state, *now));
        let retry_after = Duration::from_micros(meter.retry_after(state, cost, *now));
        Outcome::denial(meter.capacity(), 0, reset_after, retry_after, *now)
    }

    /// The outcome of a denial, for callers that need no other: being a function of its own, it
    /// takes no registers from their fast path.
    #[cold]
    #[inline(never)]
    pub(crate) fn denial<M: Meter<State = S>>(&self, meter: &M, cost: Cost) -> Outcome {
        self.outcome(meter, cost)
    }
}

impl NewSubject<'_> {
    /// Decides for the subject if there is a free slot; `None` leaves it to the slow path.
    #[inline(never)]
    pub(crate) fn acquire<M: Compact>(mut self, meter: &M, cost: Cost) -> Option<Outcome> {
        // The sketch may have usage of the subject from when the store was full.
        if self.overflow.is_live(self.now) {
            return None;
        }
        let first = self.shard.acquire_first(meter, self.fingerprint, cost, self.now);
        let (state, allowed) = first?;
        drop(self.shard);
        Some(Decided { state, allowed, now: self.now }.outcome(meter, cost))
    }
}
