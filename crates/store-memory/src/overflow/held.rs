//! Usage of sliding windows: held as if all of it had been admitted at the time of the latest
//! admission. That is stricter than the log and the two counters, never more generous.
//!
//! A cell holds the millisecond at which it expires (42 bits) and the used share of the limit, in
//! parts of 2^21 (22 bits).

use headgate::{
    Limit, State, Timestamp,
    algorithm::{sliding_window, sliding_window_counter},
    limit::Parameters,
};

const LOAD_BITS: u32 = 22;
const MAX_LOAD: u64 = (1 << LOAD_BITS) - 1;
const WHOLE: u64 = 1 << (LOAD_BITS - 1);
const MAX_MILLIS: u64 = (1 << (u64::BITS - LOAD_BITS)) - 1;

/// The lowest bound of each part: both are valid for the subject.
pub(super) fn lowest<const N: usize>(cells: [u64; N], now: Timestamp) -> u64 {
    let millis = cells.iter().map(|cell| cell >> LOAD_BITS).min().unwrap_or(0);
    let load = cells.iter().map(|cell| cell & MAX_LOAD).min().unwrap_or(0);
    if millis * 1_000 <= now.as_micros() { 0 } else { millis << LOAD_BITS | load }
}

/// A cell after `new` was charged to it at `now`.
pub(super) fn merge(old: u64, new: u64, now: Timestamp) -> u64 {
    if until(old) <= now.as_micros() {
        return new;
    }
    let millis = (old >> LOAD_BITS).max(new >> LOAD_BITS);
    millis << LOAD_BITS | (old & MAX_LOAD).max(new & MAX_LOAD)
}

/// The microsecond at which the cell expires.
pub(super) const fn until(cell: u64) -> u64 {
    (cell >> LOAD_BITS) * 1_000
}

/// The usage in `state`, charged last at `now`.
pub(super) fn encode(state: &State, limit: &Limit, now: Timestamp) -> u64 {
    let (count, until): (u64, u64) = match state {
        State::Log(log) => {
            let count = log.entries().map(|entry| u64::from(entry.count)).sum();
            (count, now.as_micros() + window(limit))
        }
        // Its window counts until the end of the next one.
        State::Counter(counter) => {
            let count = u64::from(counter.previous) + u64::from(counter.current);
            (count, counter.start + 2 * window(limit))
        }
        _ => (0, 0),
    };
    let load = (u128::from(count) * u128::from(WHOLE)).div_ceil(u128::from(limit.capacity()));
    let millis = until.div_ceil(1_000).min(MAX_MILLIS);
    millis << LOAD_BITS | load.min(u128::from(MAX_LOAD)) as u64
}

pub(super) fn decode(cell: u64, limit: &Limit, now: Timestamp) -> State {
    let count = u128::from(cell & MAX_LOAD) * u128::from(limit.capacity()) / u128::from(WHOLE);
    let count = count.min(u128::from(u32::MAX)) as u32;
    if until(cell) <= now.as_micros() || count == 0 {
        return State::Fresh;
    }
    let (now, window) = (now.as_micros(), window(limit));
    match limit.parameters() {
        Parameters::SlidingWindow(_) => {
            let at = until(cell).saturating_sub(window).min(now);
            State::Log([sliding_window::Entry { at, count }].into_iter().collect())
        }
        Parameters::SlidingWindowCounter(_) => {
            let at = until(cell).saturating_sub(2 * window).min(now);
            let start = at - at % window;
            State::Counter(sliding_window_counter::State { start, previous: 0, current: count })
        }
        _ => State::Fresh,
    }
}

fn window(limit: &Limit) -> u64 {
    match limit.parameters() {
        Parameters::SlidingWindow(window) => window.window(),
        Parameters::SlidingWindowCounter(window) => window.window(),
        _ => 0,
    }
}
