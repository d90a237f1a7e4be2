//! States of fixed size, packed into two words.

use headgate::{
    Limit, State,
    algorithm::{bucket, fixed_window, sliding_window_counter},
    limit::Rule,
};

/// A fingerprint (0: the slot is free) and a packed state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) fingerprint: u64,
    pub(crate) packed: Packed,
}

/// A state whose first word is the last microsecond at which it means anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    until: u64,
    counts: u64,
}

impl Packed {
    /// Packs a state of fixed size; `None` for one that has none.
    #[inline]
    pub(crate) fn pack(state: &State, limit: &Limit) -> Option<Self> {
        Some(match state {
            State::Fresh => Self::default(),
            State::Bucket(s) => Self { until: s.full_at, counts: pair(s.fraction, s.rate) },
            State::Window(s) => Self { until: s.end, counts: s.count },
            State::Counter(s) => {
                Self { until: s.start + two_windows(limit), counts: pair(s.previous, s.current) }
            }
            State::Log(_) => return None,
        })
    }

    /// The state that `limit`'s algorithm packed.
    #[inline]
    pub(crate) fn unpack(self, limit: &Limit) -> State {
        let Self { until, counts } = self;
        let (high, low) = ((counts >> 32) as u32, counts as u32);
        match limit.rule() {
            Rule::TokenBucket(_) | Rule::LeakyBucket(_) => {
                State::Bucket(bucket::State { full_at: until, fraction: high, rate: low })
            }
            Rule::FixedWindow(_) | Rule::Calendar(_) => {
                State::Window(fixed_window::State { end: until, count: counts })
            }
            Rule::SlidingWindowCounter(_) => State::Counter(sliding_window_counter::State {
                start: until.saturating_sub(two_windows(limit)),
                previous: high,
                current: low,
            }),
            Rule::SlidingWindow(_) => State::Fresh,
        }
    }

    /// Whether the state is that of a subject never seen.
    #[inline]
    pub(crate) const fn is_spent(self, now: u64) -> bool {
        self.until < now
    }
}

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

const fn two_windows(limit: &Limit) -> u64 {
    match limit.rule() {
        Rule::SlidingWindowCounter(counter) => 2 * counter.window(),
        _ => 0,
    }
}
