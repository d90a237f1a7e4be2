//! Usage that decreases steadily or ends with a window, as the time at which it is gone.
//!
//! For a bucket that is the time at which it is full. A fixed or calendar window counts as a bucket
//! whose clock is stopped at the window's start: a share of the limit is the same share of the
//! window after that, so everything is gone when the next window begins. Different limits can share
//! such a cell, because a share of the limit means the same to all of them.
//!
//! Times are in 1/4096 microseconds. Encoding rounds up and decoding rounds down to what the limit
//! can count, which returns exactly what was encoded for rates up to 4,096 per window and never
//! less for others.

use headgate::{
    Limit, State, Timestamp,
    algorithm::{Bucket, bucket, fixed_window},
    limit::Parameters,
};

const FRACTION_BITS: u32 = 12;

/// A window: its start, its length in microseconds and its limit.
struct Window {
    start: u64,
    length: u64,
    limit: u64,
}

pub(super) fn lowest<const N: usize>(cells: [u64; N]) -> u64 {
    cells.into_iter().min().unwrap_or(0)
}

pub(super) fn encode(state: &State, limit: &Limit) -> u64 {
    match (state, limit.parameters()) {
        (State::Bucket(state), _) => {
            let fraction =
                (u64::from(state.fraction) << FRACTION_BITS).div_ceil(u64::from(state.rate).max(1));
            point(state.full_at).saturating_add(fraction)
        }
        (State::Window(state), parameters) => {
            // The last microsecond of a window identifies it.
            let last = Timestamp::from_micros(state.end.saturating_sub(1));
            Window::of(parameters, last).map_or(0, |window| window.encode(state.count))
        }
        _ => 0,
    }
}

pub(super) fn decode(cell: u64, limit: &Limit, now: Timestamp) -> State {
    match limit.parameters() {
        Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
            decode_bucket(cell, bucket, now)
        }
        parameters => {
            Window::of(parameters, now).map_or(State::Fresh, |window| window.decode(cell))
        }
    }
}

/// Returns `true` if any usage is left, even if it is less than a unit of `limit`.
pub(super) fn is_live(cell: u64, limit: &Limit, now: Timestamp) -> bool {
    match limit.parameters() {
        Parameters::TokenBucket(_) | Parameters::LeakyBucket(_) => {
            cell >> FRACTION_BITS >= now.as_micros()
        }
        parameters => Window::of(parameters, now).is_some_and(|window| cell > point(window.start)),
    }
}

fn decode_bucket(cell: u64, bucket: &Bucket, now: Timestamp) -> State {
    let full_at = cell >> FRACTION_BITS;
    if full_at < now.as_micros() {
        return State::Fresh;
    }
    let fraction = cell & ((1 << FRACTION_BITS) - 1);
    let fraction = ((fraction * u64::from(bucket.rate())) >> FRACTION_BITS) as u32;
    State::Bucket(bucket::State { full_at, fraction, rate: bucket.rate() })
}

/// A microsecond as the value of a cell.
const fn point(micros: u64) -> u64 {
    if micros >> (u64::BITS - FRACTION_BITS) == 0 { micros << FRACTION_BITS } else { u64::MAX }
}

impl Window {
    fn of(parameters: &Parameters, now: Timestamp) -> Option<Self> {
        match parameters {
            Parameters::FixedWindow(window) => {
                let start = now.as_micros() - now.as_micros() % window.window();
                let limit = u64::from(window.limit());
                Some(Self { start, length: window.window(), limit })
            }
            Parameters::Calendar(calendar) => {
                let (start, end) = calendar.bounds(now);
                let length = end.saturating_sub(start).max(1);
                Some(Self { start, length, limit: calendar.limit() })
            }
            _ => None,
        }
    }

    fn encode(&self, count: u64) -> u64 {
        // An overdraft ends with its window, too.
        let count = count.min(self.limit);
        let share = (u128::from(count) * self.points()).div_ceil(u128::from(self.limit));
        point(self.start).saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }

    fn decode(&self, cell: u64) -> State {
        let share = u128::from(cell.saturating_sub(point(self.start)));
        let count = (share * u128::from(self.limit) / self.points()).min(u128::from(self.limit));
        match count as u64 {
            0 => State::Fresh,
            count => State::Window(fixed_window::State { end: self.start + self.length, count }),
        }
    }

    const fn points(&self) -> u128 {
        (self.length as u128) << FRACTION_BITS
    }
}
