//! Groups of limits that share a table.

use headgate::{Limit, limit::Parameters};

/// Limits whose usage is encoded alike, and whose windows are about as long. A limit per hour must
/// not fill the cells of a limit per second, which would block those for an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group(usize);

/// Meaning of a cell's 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// See [`level`](super::level).
    Level,
    /// See [`held`](super::held).
    Held,
}

/// Longest window of each group, in microseconds; the last group has none.
const LONGEST: [u64; 3] = [10_000_000, 600_000_000, 36_000_000_000];

impl Group {
    pub(super) const COUNT: usize = 2 * (LONGEST.len() + 1);

    pub(super) fn of(limit: &Limit) -> Self {
        let (encoding, window) = match limit.parameters() {
            // Not the time to fill, although a burst may last longer than its window: limits of one
            // rate with different bursts must find each other's usage.
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                (Encoding::Level, bucket.window())
            }
            Parameters::FixedWindow(window) => (Encoding::Level, window.window()),
            Parameters::Calendar(_) => (Encoding::Level, u64::MAX),
            Parameters::SlidingWindow(window) => (Encoding::Held, window.window()),
            Parameters::SlidingWindowCounter(window) => (Encoding::Held, window.window()),
            // Never counted in the sketch: its places have holders.
            Parameters::Concurrency(places) => (Encoding::Held, places.window()),
        };
        let scale = LONGEST.iter().filter(|longest| window > **longest).count();
        Self(2 * scale + usize::from(encoding == Encoding::Held))
    }

    pub(super) const fn index(self) -> usize {
        self.0
    }

    pub(super) const fn encoding(self) -> Encoding {
        if self.0.is_multiple_of(2) { Encoding::Level } else { Encoding::Held }
    }
}
