//! So many a second, and a second's worth at once.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// So many a second, and a second's worth at once.
#[derive(Debug)]
pub(super) struct Rate {
    /// Nanoseconds that one takes.
    interval: u64,
    /// When everything that was taken will have flowed back, in nanoseconds.
    whole_at: AtomicU64,
}

const SECOND: u64 = 1_000_000_000;

impl Rate {
    pub(super) fn new(per_second: NonZeroU32) -> Self {
        let interval = (SECOND / u64::from(per_second.get())).max(1);
        Self { interval, whole_at: AtomicU64::new(0) }
    }

    /// Takes one, at this many microseconds of a steady clock.
    pub(super) fn take(&self, steady: u64) -> bool {
        let now = steady.saturating_mul(1_000);
        let next = |whole_at: u64| {
            let next = whole_at.max(now) + self.interval;
            (next - now <= SECOND).then_some(next)
        };
        self.whole_at.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_a_second_at_once_and_then_the_rate() {
        let rate = Rate::new(NonZeroU32::new(4).unwrap());
        let taken = |at| (0..10).filter(|_| rate.take(at)).count();
        assert_eq!(taken(7_000_000), 4);
        assert_eq!(taken(7_249_999), 0);
        assert_eq!(taken(7_250_000), 1);
        assert_eq!(taken(8_000_000), 3);
        assert_eq!(taken(60_000_000), 4);
    }
}
