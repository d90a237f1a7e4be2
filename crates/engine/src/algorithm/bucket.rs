//! The token bucket and the leaky bucket: the tokens missing from the one are the level of the
//! other, so both have the same arithmetic.
//!
//! Debt is the number of tokens that were taken and have not returned yet. It is counted in
//! *grains*: a token has as many grains as the window has microseconds, so that a rate of `n`
//! tokens per window is exactly `n` grains per microsecond.

use crate::{Cost, Limit, Timestamp};

use super::{Meter, TakenAt};

/// A bucket of `burst` tokens to which `rate` tokens return every window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u32,
    window: u64,
    burst: u32,
    // Computed in advance, so that a decision on one token needs no division:
    /// microseconds in which one token returns, and the remaining grains;
    interval: (u64, u32),
    /// the same for all tokens, and for all but one, which is the debt that still admits one;
    fill: (u64, u32),
    fill_but_one: (u64, u32),
    /// 2^64 / window;
    reciprocal: u64,
    /// all of its grains, if they fit into 63 bits.
    most_if_small: Option<u64>,
}

/// The time at which the bucket is full: `full_at` plus `fraction / rate` microseconds.
///
/// The rate is that of the last change. Keeping it makes a change of the limit exact: the debt in
/// tokens stays the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Microseconds since the epoch.
    pub full_at: u64,
    /// Grains beyond `full_at`, fewer than `rate`.
    pub fraction: u32,
    /// Grains per microsecond.
    pub rate: u32,
}

impl Bucket {
    /// `rate` and `burst` are at least 1.
    pub(crate) fn new(rate: u32, window: u64, burst: u32) -> Self {
        let interval = div_rem(window.into(), rate);
        let most = u128::from(burst) * u128::from(window);
        let fill = div_rem(most, rate);
        let fill_but_one = div_rem(most - u128::from(window), rate);
        let most_if_small = u64::try_from(most).ok().filter(|most| *most < u64::MAX / 2);
        let reciprocal = u64::MAX / window;
        Self { rate, window, burst, interval, fill, fill_but_one, reciprocal, most_if_small }
    }

    /// Tokens that return every window.
    pub const fn rate(&self) -> u32 {
        self.rate
    }

    /// Maximum number of tokens.
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// The window in microseconds, which is also the number of grains in a token.
    pub const fn window(&self) -> u64 {
        self.window
    }

    /// Microseconds from empty to full, rounded up.
    pub fn fill_time(&self) -> u64 {
        self.fill.0 + u64::from(self.fill.1 > 0)
    }

    fn most(&self) -> u128 {
        self.grains(u64::from(self.burst))
    }

    pub(crate) fn grains(&self, tokens: u64) -> u128 {
        u128::from(tokens) * u128::from(self.window)
    }

    fn owing(&self, debt: u128, now: Timestamp) -> State {
        State::owing(debt, self.rate, now)
    }

    #[inline]
    fn whole_tokens(&self, grains: u64) -> u64 {
        // The reciprocal is rounded down, so this is exact or one too few.
        let tokens = ((u128::from(grains) * u128::from(self.reciprocal)) >> 64) as u64;
        tokens + u64::from(grains - tokens * self.window >= self.window)
    }

    /// Slow path: takes any `cost`, from a state of any rate, counting grains.
    #[inline(never)]
    fn admitted(&self, mut state: State, cost: Cost, now: Timestamp) -> (State, bool) {
        let wanted = state.debt(now) + self.grains(cost.get());
        if wanted > self.most() {
            self.adopt(&mut state, now);
            return (state, false);
        }
        (self.owing(wanted, now), true)
    }

    /// The state after taking one token at this bucket's rate.
    #[inline]
    fn one_more(&self, state: &State, now: Timestamp) -> State {
        let (from, fraction) = match state.full_at.checked_sub(now.as_micros()) {
            Some(_) => (state.full_at, state.fraction),
            None => (now.as_micros(), 0),
        };
        let (micros, grains) = self.interval;
        let (full_at, fraction) = (from + micros, u64::from(fraction) + u64::from(grains));
        let carried = fraction >= u64::from(self.rate);
        let fraction = if carried { fraction - u64::from(self.rate) } else { fraction };
        let full_at = full_at + u64::from(carried);
        State { full_at, fraction: fraction as u32, rate: self.rate }
    }
}

impl State {
    /// The state with a debt of `debt` grains at `now`, of which `rate` return every microsecond.
    #[inline(never)] // It divides; keeping it out lets its callers be inlined.
    pub fn owing(debt: u128, rate: u32, now: Timestamp) -> Self {
        if rate == 0 {
            return Self::default();
        }
        if debt == 0 {
            // The rate stays known, for grants that are recorded later.
            return Self { rate, ..Self::default() };
        }
        let (micros, fraction) = div_rem(debt, rate);
        Self { full_at: now.as_micros().saturating_add(micros), fraction, rate }
    }

    /// Reduces the debt by `grains`.
    pub(crate) fn give_back(&mut self, grains: u128, now: Timestamp) {
        *self = Self::owing(self.debt(now).saturating_sub(grains), self.rate, now);
    }

    /// Debt at `now`, in grains.
    #[inline]
    pub fn debt(&self, now: Timestamp) -> u128 {
        match self.full_at.checked_sub(now.as_micros()) {
            None => 0,
            Some(micros) => u128::from(micros) * u128::from(self.rate) + u128::from(self.fraction),
        }
    }
}

/// Microseconds in which `grains` return. It takes no state as an argument, which would force the
/// state into memory.
#[inline(never)]
fn flow_back(grains: u128, rate: u32) -> u64 {
    if grains == 0 { 0 } else { div_ceil(grains, rate) }
}

impl Meter for Bucket {
    type State = State;

    fn capacity(&self) -> u64 {
        u64::from(self.burst)
    }

    #[inline]
    fn admit(&self, state: &mut State, cost: Cost, now: Timestamp) -> bool {
        let same_rate = state.rate == self.rate || state.full_at < now.as_micros();
        if cost == Cost::ONE && same_rate {
            // Fast path: comparing times needs no multiplication.
            let owed = state.full_at.checked_sub(now.as_micros());
            let allowed = owed.is_none_or(|micros| (micros, state.fraction) <= self.fill_but_one);
            if allowed {
                *state = self.one_more(state, now);
            }
            return allowed;
        }
        let allowed;
        (*state, allowed) = self.admitted(*state, cost, now);
        allowed
    }

    fn admits(&self, state: &State, cost: Cost, now: Timestamp) -> bool {
        state.debt(now) + self.grains(cost.get()) <= self.most()
    }

    #[inline]
    fn adopt(&self, state: &mut State, now: Timestamp) {
        // From here on the debt is paid back at the new rate, admitted or not.
        if state.rate != self.rate {
            *state = self.owing(state.debt(now), now);
        }
    }

    fn record(&self, state: &mut State, cost: Cost, at: Timestamp) {
        let rate = if state.rate == 0 { self.rate } else { state.rate };
        *state = State::owing(state.debt(at) + self.grains(cost.get()), rate, at);
    }

    fn give_back(&self, state: &mut State, cost: Cost, taken: TakenAt, now: Timestamp) {
        // A bucket that was full since then has forgotten the take, and others may have taken what
        // had refilled. Nothing tells whether that happened, so what can have refilled stays, also
        // at the rate of another limit that was in force.
        let rate = self.rate.max(state.rate);
        let refilled = match taken {
            TakenAt::Known(at) => u128::from(now.since(at)) * u128::from(rate),
            TakenAt::Unknown => 0,
        };
        state.give_back(self.grains(cost.get()).saturating_sub(refilled), now);
    }

    fn room(&self, state: &State, now: Timestamp) -> u64 {
        let most = self.most() * u128::from(1 + Limit::MAX_DEBT);
        div_floor(most.saturating_sub(state.debt(now)), self.window)
    }

    fn debt(&self, state: &State, now: Timestamp) -> u64 {
        let beyond = state.debt(now).saturating_sub(self.most());
        div_floor(beyond + u128::from(self.window - 1), self.window)
    }

    #[inline]
    fn remaining(&self, state: &State, now: Timestamp) -> u64 {
        let Some(owed) = state.full_at.checked_sub(now.as_micros()) else {
            return u64::from(self.burst);
        };
        match self.most_if_small {
            Some(most) if state.rate == self.rate => {
                // Beyond the time to fill, nothing is left.
                let owed = owed.min(self.fill.0 + 1);
                let debt = owed * u64::from(self.rate) + u64::from(state.fraction);
                self.whole_tokens(most.saturating_sub(debt))
            }
            _ => div_floor(self.most().saturating_sub(state.debt(now)), self.window),
        }
    }

    #[inline]
    fn reset_after(&self, state: &State, now: Timestamp) -> u64 {
        match state.full_at.checked_sub(now.as_micros()) {
            None => 0,
            Some(micros) => micros + u64::from(state.fraction > 0),
        }
    }

    #[inline]
    fn retry_after(&self, state: &State, cost: Cost, now: Timestamp) -> u64 {
        if cost == Cost::ONE && state.rate == self.rate {
            let (micros, fraction) = self.fill_but_one;
            let late = u64::from(state.fraction > fraction);
            return (state.full_at + late).saturating_sub(now.as_micros() + micros);
        }
        let wanted = state.debt(now) + self.grains(cost.get());
        flow_back(wanted.saturating_sub(self.most()), state.rate)
    }
}

// A 128-bit division costs as much as ten 64-bit ones, and grains almost always fit into 64 bits.

#[inline]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000_000);

    /// Any bucket that fills within a year, whether its grains fit into 64 bits or not.
    fn bucket() -> impl Strategy<Value = Bucket> {
        const YEAR: u64 = 31_000_000_000_000;
        let number = || prop_oneof![1..200_u32, any::<u32>().prop_map(|n| n.max(1))];
        let window = prop_oneof![1..200_u64, 1..YEAR];
        (number(), window, number()).prop_map(|(rate, window, burst)| {
            let most = u128::from(YEAR) * u128::from(rate) / u128::from(window);
            Bucket::new(rate, window, burst.min(u32::try_from(most).unwrap_or(u32::MAX)))
        })
    }

    /// A state with that bucket's rate or another one: full, almost empty, or anything.
    fn state(bucket: Bucket) -> impl Strategy<Value = State> {
        let dry = bucket.fill.0.saturating_sub(bucket.interval.0);
        let owed = prop_oneof![
            Just(0),
            0..=bucket.fill.0.saturating_mul(2),
            dry.saturating_sub(2)..=dry.saturating_add(2),
            Just(bucket.fill.0),
        ];
        let rate = prop_oneof![3 => Just(bucket.rate), 1 => 1..=u32::MAX];
        (owed, any::<u32>(), rate, 0..=1_u64).prop_map(|(owed, fraction, rate, before)| State {
            full_at: NOW.as_micros() + owed - before,
            fraction: fraction % rate,
            rate,
        })
    }

    #[test]
    fn the_time_to_fill_is_rounded_up() {
        assert_eq!(Bucket::new(10, 60_000_000, 10).fill_time(), 60_000_000);
        assert_eq!(Bucket::new(3, 10, 1).fill_time(), 4);
    }

    proptest! {
        #[test]
        fn the_fast_path_for_one_token_agrees_with_the_slow_path(
            (bucket, state) in bucket().prop_flat_map(|bucket| (Just(bucket), state(bucket)))
        ) {
            let mut taken = state;
            let allowed = bucket.admit(&mut taken, Cost::ONE, NOW);
            let (by_grain, allowed_by_grain) = bucket.admitted(state, Cost::ONE, NOW);
            prop_assert_eq!(allowed, allowed_by_grain);
            prop_assert_eq!(taken.debt(NOW), by_grain.debt(NOW));

            // Later calls see a state with this bucket's rate.
            let mut state = state;
            bucket.adopt(&mut state, NOW);
            let waits = bucket.retry_after(&state, Cost::ONE, NOW);
            let wanted = state.debt(NOW) + bucket.grains(1);
            prop_assert_eq!(waits, flow_back(wanted.saturating_sub(bucket.most()), bucket.rate));

            let left = bucket.most().saturating_sub(state.debt(NOW)) / u128::from(bucket.window);
            prop_assert_eq!(u128::from(bucket.remaining(&state, NOW)), left);
        }
    }
}
