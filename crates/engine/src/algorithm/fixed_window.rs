//! One counter that restarts at every multiple of the window since the epoch.

use crate::{Cost, Limit, Timestamp};

use super::{Meter, TakenAt};

/// At most `limit` units in every window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

/// Units taken in the window that ends at `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The first microsecond after the window.
    pub end: u64,
    /// Units taken.
    pub count: u64,
}

impl FixedWindow {
    /// Units admitted in a window.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The window in microseconds.
    pub const fn window(&self) -> u64 {
        self.window
    }

    pub(crate) fn end(&self, now: Timestamp) -> u64 {
        (now.as_micros() / self.window + 1) * self.window
    }
}

impl State {
    /// Units taken in the window of `now`.
    pub(crate) const fn count_at(&self, now: Timestamp) -> u64 {
        if now.as_micros() < self.end { self.count } else { 0 }
    }

    /// Microseconds until the counter restarts; 0 if it is zero.
    pub(crate) const fn reset_after(&self, now: Timestamp) -> u64 {
        if self.count_at(now) == 0 { 0 } else { self.end - now.as_micros() }
    }

    /// Units that an overdraft of this limit can take.
    pub(crate) fn room(&self, limit: u64, now: Timestamp) -> u64 {
        let most = limit.saturating_mul(1 + Limit::MAX_DEBT).min(Cost::MAX);
        most.saturating_sub(self.count_at(now))
    }

    /// Returns units, unless a later window has begun since they were `taken`.
    pub(crate) fn give_back(&mut self, cost: Cost, taken: TakenAt, start: u64, now: Timestamp) {
        let here = match taken {
            TakenAt::Known(at) => at.as_micros() >= start,
            TakenAt::Unknown => true,
        };
        if here {
            self.count = self.count_at(now).saturating_sub(cost.get());
        }
    }
}

impl Meter for FixedWindow {
    type State = State;

    fn capacity(&self) -> u64 {
        u64::from(self.limit)
    }

    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        let admitted = self.admits(state, cost, now);
        if admitted {
            let count = state.count_at(now) + cost.get();
            *state = State { end: self.end(now), count };
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        state.count_at(now) + cost.get() <= u64::from(self.limit)
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        *state = State { end: self.end(at), count: state.count_at(at) + cost.get() };
    }

    fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        state.give_back(cost, taken, state.end.saturating_sub(self.window), now);
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        u64::from(self.limit).saturating_sub(state.count_at(now))
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        state.room(u64::from(self.limit), now)
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        state.count_at(now).saturating_sub(u64::from(self.limit))
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        state.reset_after(now)
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        if self.admits(state, cost, now) { 0 } else { state.reset_after(now) }
    }
}
