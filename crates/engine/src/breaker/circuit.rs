//! When something that keeps failing is left alone, and when it is tried again.

use std::{
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    time::Duration,
};

use crate::{Clock, Timestamp};

/// Counts failures in a row; after `tolerance` of them it is open, and admits one try in every
/// `pause` until one succeeds.
#[derive(Debug)]
pub struct Circuit {
    tolerance: u32,
    pause: Duration,
    failures: AtomicU32,
    /// When the next try is admitted while it is open, in microseconds.
    try_again_at: AtomicU64,
}

impl Circuit {
    /// Failures in a row after which a circuit opens, unless it is given another number.
    pub const TOLERANCE: u32 = 5;

    /// Time between tries of an open circuit, unless it is given another.
    pub const PAUSE: Duration = Duration::from_millis(500);

    /// A closed circuit.
    pub const fn new(tolerance: u32, pause: Duration) -> Self {
        let (failures, try_again_at) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { tolerance, pause, failures, try_again_at }
    }

    /// Whether it failed too often in a row.
    pub fn is_open(&self) -> bool {
        self.failures.load(Relaxed) >= self.tolerance
    }

    /// Whether a call may try now. Of many at an open circuit, one wins the right to.
    pub fn admits(&self, clock: &impl Clock) -> bool {
        if !self.is_open() {
            return true;
        }
        // Before the clock: a time that somebody else sets meanwhile is not later than a pause from now.
        let due = self.try_again_at.load(Acquire);
        let now = clock.now();
        let next = self.next_try(now);
        // A time further off than a pause was told by a clock that has been set back since.
        let is_due = now.as_micros() >= due || due > next;
        is_due && self.try_again_at.compare_exchange(due, next, AcqRel, Relaxed).is_ok()
    }

    /// Takes note of a call that was tried.
    pub fn record(&self, failed: bool, clock: &impl Clock) {
        if !failed {
            // A load before the store keeps the healthy path free of shared writes.
            if self.failures.load(Relaxed) != 0 {
                self.failures.store(0, Relaxed);
            }
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures == self.tolerance {
            self.try_again_at.store(self.next_try(clock.now()), Release);
        }
    }

    /// Admits the next try at once: there is a sign that it would succeed.
    pub fn allow_retry_now(&self) {
        if self.is_open() {
            self.try_again_at.store(0, Release);
        }
    }

    fn next_try(&self, now: Timestamp) -> u64 {
        (now + self.pause).as_micros()
    }
}
