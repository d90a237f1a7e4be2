//! Two counters that approximate the log in constant space: the previous window counts in
//! proportion to the part of it that the sliding window still covers.

use crate::{Cost, Limit, Timestamp};

use super::{Meter, TakenAt};

/// At most `limit` units in the sliding window, as estimated by two aligned counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindowCounter {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

/// Units taken in the window that begins at `start`, and in the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Microseconds since the epoch, a multiple of the window.
    pub start: u64,
    /// Units taken in the window before.
    pub previous: u32,
    /// Units taken in this window.
    pub current: u32,
}

impl SlidingWindowCounter {
    /// Units admitted in any window.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The window in microseconds.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// The state, moved on to the window that contains `now`.
    fn at(&self, state: &State, now: Timestamp) -> State {
        let start = now.as_micros() - now.as_micros() % self.window;
        match start.saturating_sub(state.start) / self.window {
            0 => State { start: state.start.max(start), ..*state },
            1 => State { start, previous: state.current, current: 0 },
            _ => State { start, previous: 0, current: 0 },
        }
    }

    /// The estimate times the window, which is an integer.
    fn weight(&self, seen: &State, now: Timestamp) -> u128 {
        let covered = self.window - now.as_micros().saturating_sub(seen.start).min(self.window);
        product(seen.previous, covered) + product(seen.current, self.window)
    }

    fn most(&self) -> u128 {
        product(self.limit, self.window)
    }

    /// Whole units that are left of `most`.
    fn left_of(&self, most: u128, state: &State, now: Timestamp) -> u64 {
        let weight = self.weight(&self.at(state, now), now);
        (most.saturating_sub(weight) / u128::from(self.window)) as u64
    }

    fn fits(&self, seen: &State, cost: Cost, now: Timestamp) -> bool {
        let cost = u128::from(cost.get()) * u128::from(self.window);
        self.weight(seen, now) + cost <= self.most()
    }

    /// The earliest offset into a window at which `previous` leaves room for `taken` units.
    fn room_at(&self, previous: u32, taken: u64) -> Option<u64> {
        let room = u64::from(self.limit).checked_sub(taken)?;
        if previous == 0 {
            return Some(0);
        }
        let covered = u128::from(room) * u128::from(self.window) / u128::from(previous);
        Some(self.window - covered.min(u128::from(self.window)) as u64)
    }
}

fn product(count: u32, micros: u64) -> u128 {
    u128::from(count) * u128::from(micros)
}

impl Meter for SlidingWindowCounter {
    type State = State;

    fn capacity(&self) -> u64 {
        u64::from(self.limit)
    }

    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        let seen = self.at(state, now);
        let admitted = self.fits(&seen, cost, now);
        if admitted {
            *state = State { current: seen.current + cost.get() as u32, ..seen };
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        self.fits(&self.at(state, now), cost, now)
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        let seen = self.at(state, at);
        *state = State { current: seen.current + cost.get() as u32, ..seen };
    }

    fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        let mut seen = self.at(state, now);
        let cost = cost.get().min(u64::from(u32::MAX)) as u32;
        match taken {
            TakenAt::Known(at) if at.as_micros() >= seen.start => {
                seen.current = seen.current.saturating_sub(cost);
            }
            TakenAt::Known(at) if at.as_micros() + self.window >= seen.start => {
                seen.previous = seen.previous.saturating_sub(cost);
            }
            TakenAt::Known(_) => {}
            TakenAt::Unknown => {
                let from_current = cost.min(seen.current);
                seen.current -= from_current;
                seen.previous = seen.previous.saturating_sub(cost - from_current);
            }
        }
        *state = seen;
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        self.left_of(self.most(), state, now)
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        let most = u64::from(self.limit) * (1 + Limit::MAX_DEBT);
        let most = product(most.min(u64::from(u32::MAX)) as u32, self.window);
        self.left_of(most, state, now)
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        let beyond = self.weight(&self.at(state, now), now).saturating_sub(self.most());
        beyond.div_ceil(u128::from(self.window)) as u64
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        let seen = self.at(state, now);
        let windows = match (seen.current, seen.previous) {
            (0, 0) => return 0,
            (0, _) => 1,
            _ => 2,
        };
        (seen.start + windows * self.window).saturating_sub(now.as_micros())
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        let seen = self.at(state, now);
        if self.fits(&seen, cost, now) {
            return 0;
        }
        // Units return as the previous window slides out, or else as this one does.
        let this_window = self.room_at(seen.previous, u64::from(seen.current) + cost.get());
        let offset = this_window.unwrap_or_else(|| {
            let next = self.room_at(seen.current, cost.get()).unwrap_or(self.window);
            self.window + next
        });
        (seen.start + offset).saturating_sub(now.as_micros())
    }
}
