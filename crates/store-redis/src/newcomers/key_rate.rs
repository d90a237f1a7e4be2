//! A rate with a burst of one second.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// A rate with a burst of one second.
#[derive(Debug)]
pub(super) struct KeyRate {
    /// Nanoseconds per unit.
    interval: u64,
    /// Time when the burst is available again, in nanoseconds.
    full_at: AtomicU64,
}

const SECOND: u64 = 1_000_000_000;

impl KeyRate {
    pub(super) fn new(per_second: NonZeroU32) -> Self {
        let interval = (SECOND / u64::from(per_second.get())).max(1);
        Self { interval, full_at: AtomicU64::new(0) }
    }

    /// Takes one at `steady` microseconds of a steady clock.
    pub(super) fn take(&self, steady: u64) -> bool {
        let now = steady.saturating_mul(1_000);
        let next = |full_at: u64| {
            let next = full_at.max(now) + self.interval;
            (next - now <= SECOND).then_some(next)
        };
        self.full_at.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admits_a_burst_of_one_second_and_then_the_rate() {
        let rate = KeyRate::new(NonZeroU32::new(4).unwrap());
        let taken = |at| (0..10).filter(|_| rate.take(at)).count();
        assert_eq!(taken(7_000_000), 4);
        assert_eq!(taken(7_249_999), 0);
        assert_eq!(taken(7_250_000), 1);
        assert_eq!(taken(8_000_000), 3);
        assert_eq!(taken(60_000_000), 4);
    }
}
