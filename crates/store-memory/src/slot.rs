//! Packed states of fixed size: two words.

use headgate::{
    State,
    algorithm::{
        Bucket, Calendar, FixedWindow, Meter, SlidingWindowCounter, bucket, fixed_window,
        sliding_window_counter,
    },
    limit::Parameters,
};

/// A fingerprint (0 for a free slot) and a packed state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) fingerprint: u64,
    pub(crate) packed: Packed,
}

/// A packed state. The first word is the last microsecond before it expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed {
    until: u64,
    counts: u64,
}

/// A meter with states of fixed size.
pub(crate) trait Compact: Meter {
    fn pack(&self, state: &Self::State) -> Packed;
    fn unpack(&self, packed: Packed) -> Self::State;
}

impl Packed {
    /// Packs a state; `None` if it has no fixed size.
    pub(crate) fn pack(state: &State, parameters: &Parameters) -> Option<Self> {
        Some(match (state, parameters) {
            (State::Fresh, _) => Self::default(),
            (State::Bucket(s), Parameters::TokenBucket(m) | Parameters::LeakyBucket(m)) => {
                m.pack(s)
            }
            (State::Window(s), Parameters::FixedWindow(m)) => m.pack(s),
            (State::Window(s), Parameters::Calendar(m)) => m.pack(s),
            (State::Counter(s), Parameters::SlidingWindowCounter(m)) => m.pack(s),
            _ => return None,
        })
    }

    /// The state that the algorithm packed.
    pub(crate) fn unpack(self, parameters: &Parameters) -> State {
        match parameters {
            Parameters::TokenBucket(m) | Parameters::LeakyBucket(m) => {
                State::Bucket(m.unpack(self))
            }
            Parameters::FixedWindow(m) => State::Window(m.unpack(self)),
            Parameters::Calendar(m) => State::Window(m.unpack(self)),
            Parameters::SlidingWindowCounter(m) => State::Counter(m.unpack(self)),
            Parameters::SlidingWindow(_) | Parameters::Concurrency(_) => State::Fresh,
        }
    }

    #[cfg(test)]
    pub(crate) const fn until(until: u64) -> Self {
        Self { until, counts: 0 }
    }

    /// Returns `true` if the state has expired and so equals that of a new subject.
    #[inline]
    pub(crate) const fn is_expired(self, now: u64) -> bool {
        self.until < now
    }
}

impl Compact for Bucket {
    #[inline]
    fn pack(&self, state: &bucket::State) -> Packed {
        Packed { until: state.full_at, counts: pair(state.fraction, state.rate) }
    }

    #[inline]
    fn unpack(&self, Packed { until, counts }: Packed) -> bucket::State {
        bucket::State { full_at: until, fraction: (counts >> 32) as u32, rate: counts as u32 }
    }
}

impl Compact for FixedWindow {
    #[inline]
    fn pack(&self, state: &fixed_window::State) -> Packed {
        pack_window(state)
    }

    #[inline]
    fn unpack(&self, packed: Packed) -> fixed_window::State {
        unpack_window(packed)
    }
}

impl Compact for Calendar {
    fn pack(&self, state: &fixed_window::State) -> Packed {
        pack_window(state)
    }

    fn unpack(&self, packed: Packed) -> fixed_window::State {
        unpack_window(packed)
    }
}

const fn pack_window(state: &fixed_window::State) -> Packed {
    Packed { until: state.end, counts: state.count }
}

const fn unpack_window(packed: Packed) -> fixed_window::State {
    fixed_window::State { end: packed.until, count: packed.counts }
}

impl Compact for SlidingWindowCounter {
    #[inline]
    fn pack(&self, state: &sliding_window_counter::State) -> Packed {
        let until = state.start + 2 * self.window();
        Packed { until, counts: pair(state.previous, state.current) }
    }

    #[inline]
    fn unpack(&self, Packed { until, counts }: Packed) -> sliding_window_counter::State {
        sliding_window_counter::State {
            start: until.saturating_sub(2 * self.window()),
            previous: (counts >> 32) as u32,
            current: counts as u32,
        }
    }
}

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use headgate::{Algorithm, Cost, Limit, Timestamp, algorithm::Period};

    use super::*;

    #[test]
    fn every_state_but_a_log_fits_a_slot_and_comes_out_unchanged() {
        let now = Timestamp::from_micros(1_772_928_123_456_789);
        for algorithm in Algorithm::RATES {
            let limit = match algorithm {
                Algorithm::Calendar => Limit::calendar(7, Period::Day, "UTC"),
                _ => Limit::new(algorithm, 7, Duration::from_secs(17)),
            };
            let limit = limit.unwrap();
            let pack = |state: &State| Packed::pack(state, limit.parameters());
            let mut state = State::Fresh;
            assert_eq!(pack(&state), Some(Packed::default()), "{algorithm}");
            assert!(limit.admit(&mut state, Cost::new(3).unwrap(), now), "{algorithm}");
            let unpacked = pack(&state).map(|packed| packed.unpack(limit.parameters()));
            let expected = Some(state).filter(|_| algorithm != Algorithm::SlidingWindow);
            assert_eq!(unpacked, expected, "{algorithm}");
        }
    }
}
