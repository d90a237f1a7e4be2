//! One counter per day or month of a time zone: the window of quotas.

#[cfg(not(feature = "calendar"))]
mod no_zone;
#[cfg(feature = "calendar")]
mod zone;

use crate::{Cost, Timestamp};

use super::{Meter, TakenAt, fixed_window::State};

#[cfg(not(feature = "calendar"))]
pub(crate) use no_zone::Zone;
#[cfg(feature = "calendar")]
pub(crate) use zone::Zone;

/// At most `limit` units in every calendar period.
///
/// Without the feature `calendar` there is no value of this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub(crate) limit: u64,
    pub(crate) period: Period,
    pub(crate) zone: Zone,
}

/// The length of a calendar window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// From one midnight to the next: 23, 24 or 25 hours.
    Day,
    /// From the first of a month to the first of the next.
    Month,
}

impl Calendar {
    /// Units admitted in a period.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The length of the window.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// First microsecond of the period that contains `now`, and first microsecond of the next one.
    ///
    /// If a zone skips midnight, the day begins at the first instant after it.
    pub fn bounds(&self, now: Timestamp) -> (u64, u64) {
        self.zone.bounds(self.period, now)
    }

    fn end(&self, state: &State, now: Timestamp) -> u64 {
        if now.as_micros() < state.end { state.end } else { self.bounds(now).1 }
    }
}

impl Meter for Calendar {
    type State = State;

    fn capacity(&self) -> u64 {
        self.limit
    }

    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        let admitted = self.admits(state, cost, now);
        if admitted {
            let count = state.count_at(now) + cost.get();
            *state = State { end: self.end(state, now), count };
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        state.count_at(now) + cost.get() <= self.limit
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        *state = State { end: self.end(state, at), count: state.count_at(at) + cost.get() };
    }

    fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        if now.as_micros() < state.end {
            let start = self.bounds(now).0;
            state.give_back(cost, taken, start, now);
        }
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        self.limit.saturating_sub(state.count_at(now))
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        state.room(self.limit, now)
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        state.count_at(now).saturating_sub(self.limit)
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        state.reset_after(now)
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        if self.admits(state, cost, now) { 0 } else { state.reset_after(now) }
    }
}
