//! The token bucket and the leaky bucket: what is missing from the one is what
//! stands in the other, so both are one piece of arithmetic.
//!
//! Debt is what has been taken and not yet flowed back. It is counted in
//! *grains*: a token is as many grains as the window has microseconds, so that a
//! rate of `n` tokens a window is exactly `n` grains a microsecond.

use crate::{Cost, Timestamp};

use super::{Meter, Taken};

/// A bucket of `burst` tokens into which `rate` tokens flow back every window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub(crate) rate: u32,
    pub(crate) window: u64,
    pub(crate) burst: u32,
}

/// When the bucket is whole again: `full_at` plus `fraction / rate` microseconds.
///
/// The rate is the one in force at the last change. Keeping it makes a change of
/// the limit exact: the debt in tokens stays what it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Microseconds since the epoch.
    pub full_at: u64,
    /// Grains beyond `full_at`, fewer than `rate`.
    pub fraction: u32,
    /// Grains a microsecond.
    pub rate: u32,
}

impl Bucket {
    /// Tokens that flow back every window.
    pub const fn rate(&self) -> u32 {
        self.rate
    }

    /// The most tokens it holds.
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// The window, in microseconds: also the grains of one token.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Microseconds from empty to full, rounded up.
    pub fn fill_time(&self) -> u64 {
        div_ceil(self.capacity(), self.rate)
    }

    fn capacity(&self) -> u128 {
        self.grains(u64::from(self.burst))
    }

    fn grains(&self, tokens: u64) -> u128 {
        u128::from(tokens) * u128::from(self.window)
    }

    fn owing(&self, debt: u128, now: Timestamp) -> State {
        State::owing(debt, self.rate, now)
    }
}

impl State {
    /// The state that owes `debt` grains at `now`, of which `rate` flow back every microsecond.
    pub fn owing(debt: u128, rate: u32, now: Timestamp) -> Self {
        if debt == 0 || rate == 0 {
            return Self::default();
        }
        let (micros, fraction) = div_rem(debt, rate);
        Self { full_at: now.as_micros().saturating_add(micros), fraction, rate }
    }

    /// Grains owed at `now`.
    pub fn debt(&self, now: Timestamp) -> u128 {
        match self.full_at.checked_sub(now.as_micros()) {
            None => 0,
            Some(micros) => u128::from(micros) * u128::from(self.rate) + u128::from(self.fraction),
        }
    }

    /// Microseconds until `grains` of the debt have flowed back.
    fn flow_back(&self, grains: u128) -> u64 {
        if grains == 0 { 0 } else { div_ceil(grains, self.rate) }
    }
}

impl Meter for Bucket {
    type State = State;

    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        let wanted = state.debt(now) + self.grains(cost.get());
        let admitted = wanted <= self.capacity();
        if admitted {
            *state = self.owing(wanted, now);
        } else {
            self.adopt(state, now);
        }
        admitted
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        state.debt(now) + self.grains(cost.get()) <= self.capacity()
    }

    fn adopt(&self, state: &mut State, now: Timestamp) {
        // From here on the debt flows back at the new rate, admitted or not.
        if state.rate != self.rate {
            *state = self.owing(state.debt(now), now);
        }
    }

    fn give_back(&self, state: &mut State, cost: Cost, _: Taken, now: Timestamp) {
        let debt = state.debt(now).saturating_sub(self.grains(cost.get()));
        *state = State::owing(debt, state.rate, now);
    }

    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        div_floor(self.capacity().saturating_sub(state.debt(now)), self.window)
    }

    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        state.flow_back(state.debt(now))
    }

    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        let wanted = state.debt(now) + self.grains(cost.get());
        state.flow_back(wanted.saturating_sub(self.capacity()))
    }
}

// A division of 128 bits costs ten of 64, and grains almost always fit into 64.

fn div_floor(grains: u128, by: u64) -> u64 {
    match u64::try_from(grains) {
        Ok(grains) => grains / by,
        Err(_) => (grains / u128::from(by)) as u64,
    }
}

fn div_rem(grains: u128, by: u32) -> (u64, u32) {
    let quotient = div_floor(grains, u64::from(by));
    (quotient, (grains - u128::from(quotient) * u128::from(by)) as u32)
}

fn div_ceil(grains: u128, by: u32) -> u64 {
    let (quotient, remainder) = div_rem(grains, by);
    quotient + u64::from(remainder > 0)
}
