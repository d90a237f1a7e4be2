//! One counter per day or month of a time zone: the window of quotas.

use jiff::{ToSpan, Zoned, tz::TimeZone};

use crate::{Cost, Timestamp};

use super::{Meter, Taken, fixed_window::State};

/// At most `limit` in every calendar period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub(crate) limit: u64,
    pub(crate) period: Period,
    pub(crate) zone: TimeZone,
}

/// The length of a calendar window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// From one midnight to the next: 23, 24 or 25 hours.
    Day,
    /// From one first of the month to the next.
    Month,
}

impl Calendar {
    /// The most that is admitted in a period.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The length of the window.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The first microsecond of the period that `now` is in, and the first after it.
    ///
    /// Where a zone skips midnight, the day begins at the first instant after it.
    pub fn bounds(&self, now: Timestamp) -> (u64, u64) {
        let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        let instant = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
        let local = instant.to_zoned(self.zone.clone());
        let first = match self.period {
            Period::Day => local.date(),
            Period::Month => local.date().first_of_month(),
        };
        let next = match self.period {
            Period::Day => first.saturating_add(1.day()),
            Period::Month => first.saturating_add(1.month()),
        };
        (self.midnight(first, now), self.midnight(next, now))
    }

    fn midnight(&self, date: jiff::civil::Date, now: Timestamp) -> u64 {
        // Only the last representable day has no midnight after it.
        date.to_zoned(self.zone.clone()).as_ref().map_or(now.as_micros() + 1, micros)
    }

    fn end(&self, state: &State, now: Timestamp) -> u64 {
        if now.as_micros() < state.end { state.end } else { self.bounds(now).1 }
    }
}

fn micros(zoned: &Zoned) -> u64 {
    u64::try_from(zoned.timestamp().as_microsecond()).unwrap_or(0)
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

    fn give_back(&self, state: &mut State, cost: Cost, taken: Taken, now: Timestamp) {
        if now.as_micros() < state.end {
            let start = self.bounds(now).0;
            state.give_back(cost, taken, start, now);
        }
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        self.limit.saturating_sub(state.count_at(now))
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        state.reset_after(now)
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        if self.admits(state, cost, now) { 0 } else { state.reset_after(now) }
    }
}
