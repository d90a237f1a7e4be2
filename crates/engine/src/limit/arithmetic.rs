//! The [`Meter`] of a limit's algorithm, on a [`State`] of any kind.

use super::{Limit, Parameters};
use crate::{
    Cost, Outcome, State, Timestamp,
    algorithm::{Bucket, Meter, TakenAt},
    state::OwnState,
};

/// Evaluates an expression with the meter of the limit's algorithm.
macro_rules! with_meter {
    ($limit:expr, |$meter:ident| $call:expr) => {
        match $limit.parameters() {
            Parameters::TokenBucket($meter) | Parameters::LeakyBucket($meter) => $call,
            Parameters::SlidingWindow($meter) => $call,
            Parameters::SlidingWindowCounter($meter) => $call,
            Parameters::FixedWindow($meter) => $call,
            Parameters::Calendar($meter) => $call,
            Parameters::Concurrency($meter) => $call,
        }
    };
}

impl Limit {
    /// Takes `cost` if it fits. Returns `true` if it did.
    pub fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        with_meter!(self, |meter| with_state_mut(meter, state, |state| meter
            .admit(state, cost, now)))
    }

    /// Returns `true` if [`admit`](Self::admit) would take `cost`.
    pub fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        with_meter!(self, |meter| with_state(meter, state, |state| meter.admits(state, cost, now)))
    }

    /// Converts a state that was written under another limit, so that this limit applies from
    /// `now`.
    pub fn adopt(&self, state: &mut State, now: Timestamp) {
        with_meter!(self, |meter| with_state_mut(meter, state, |state| meter.adopt(state, now)));
    }

    /// Returns `true` if it is a bucket whose units return at a lower rate than those of `state`.
    pub(crate) fn is_slower_than(&self, state: &State) -> bool {
        match (self.bucket(), state) {
            (Some(bucket), State::Bucket(state)) => bucket.rate() < state.rate,
            _ => false,
        }
    }

    /// Takes `cost` at `at`, whether it fits or not: it was admitted before.
    pub fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        with_meter!(self, |meter| {
            with_state_mut(meter, state, |state| meter.record(state, cost, at));
        });
    }

    /// Returns up to `cost` units taken at `taken`.
    pub fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        with_meter!(self, |meter| {
            with_state_mut(meter, state, |state| meter.give_back(state, cost, taken, now));
        });
    }

    /// The outcome that follows from `state`, which is the subject's state after the decision.
    pub fn outcome(&self, state: &State, cost: Cost, now: Timestamp, allowed: bool) -> Outcome {
        with_meter!(self, |meter| {
            with_state(meter, state, |state| Outcome::of(meter, state, cost, now, allowed))
        })
    }

    /// Units available now.
    pub fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        with_meter!(self, |meter| with_state(meter, state, |state| meter.remaining(state, now)))
    }

    /// Units that an overdraft can take now: those available, and a debt of up to
    /// [`MAX_DEBT`](Self::MAX_DEBT) times the limit.
    pub fn room(&self, state: &State, now: Timestamp) -> u64 {
        with_meter!(self, |meter| with_state(meter, state, |state| meter.room(state, now)))
    }

    /// Units taken beyond the limit, rounded up.
    pub fn debt(&self, state: &State, now: Timestamp) -> u64 {
        with_meter!(self, |meter| with_state(meter, state, |state| meter.debt(state, now)))
    }

    /// The bucket, if the algorithm is one.
    pub(crate) const fn bucket(&self) -> Option<&Bucket> {
        match self.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => Some(bucket),
            Parameters::SlidingWindow(_)
            | Parameters::SlidingWindowCounter(_)
            | Parameters::FixedWindow(_)
            | Parameters::Calendar(_)
            | Parameters::Concurrency(_) => None,
        }
    }

    /// Microseconds until all units are available.
    pub fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        with_meter!(self, |meter| with_state(meter, state, |state| meter.reset_after(state, now)))
    }

    /// Microseconds until `cost` is admitted if nothing else is taken; 0 if it is now.
    pub fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        with_meter!(self, |meter| with_state(meter, state, |state| meter
            .retry_after(state, cost, now)))
    }
}

fn with_state<M: Meter<State: OwnState>, T>(
    _: &M,
    state: &State,
    f: impl FnOnce(&M::State) -> T,
) -> T {
    match M::State::of(state) {
        Some(own) => f(own),
        None => f(&M::State::default()),
    }
}

fn with_state_mut<M: Meter<State: OwnState>, T>(
    _: &M,
    state: &mut State,
    f: impl FnOnce(&mut M::State) -> T,
) -> T {
    f(M::State::of_mut(state))
}
