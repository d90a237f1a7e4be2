//! The state of a circuit breaker.

use std::{
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    time::Duration,
};

use crate::{Clock, Timestamp};

/// The state of a circuit breaker: closed, or open after too many consecutive failures. An open
/// circuit admits one attempt in every retry interval, until one succeeds.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Circuit, ManualClock};
///
/// let clock = ManualClock::default();
/// let circuit = Circuit::new(2, Duration::from_secs(1));
/// circuit.record(true, &clock);
/// circuit.record(true, &clock);
/// assert!(circuit.is_open() && !circuit.admits(&clock));
///
/// clock.advance(Duration::from_secs(1));
/// assert!(circuit.admits(&clock), "one attempt");
/// assert!(!circuit.admits(&clock), "and no second one");
/// circuit.record(false, &clock);
/// assert!(!circuit.is_open());
/// ```
#[derive(Debug)]
pub struct Circuit {
    failure_threshold: u32,
    retry_interval: Duration,
    failures: AtomicU32,
    /// Time of the next attempt while the circuit is open, in microseconds.
    try_again_at: AtomicU64,
}

impl Circuit {
    /// Default number of consecutive failures that opens a circuit.
    pub const FAILURE_THRESHOLD: u32 = 5;

    /// Default time between attempts while a circuit is open.
    pub const RETRY_INTERVAL: Duration = Duration::from_millis(500);

    /// A closed circuit.
    pub const fn new(failure_threshold: u32, retry_interval: Duration) -> Self {
        let (failures, try_again_at) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { failure_threshold, retry_interval, failures, try_again_at }
    }

    /// Returns `true` if the circuit is open.
    pub fn is_open(&self) -> bool {
        self.failures.load(Relaxed) >= self.failure_threshold
    }

    /// Returns `true` if a call may be attempted now. If the circuit is open, only one of several
    /// concurrent calls is admitted.
    pub fn admits(&self, clock: &impl Clock) -> bool {
        if !self.is_open() {
            return true;
        }
        // Loaded before the clock is read, so that a concurrent update is at most one interval
        // ahead.
        let due = self.try_again_at.load(Acquire);
        let now = clock.now();
        let next = self.next_try(now);
        // A time further ahead than one interval means that the clock was set back since.
        let is_due = now.as_micros() >= due || due > next;
        is_due && self.try_again_at.compare_exchange(due, next, AcqRel, Relaxed).is_ok()
    }

    /// Records the result of a call that was attempted.
    pub fn record(&self, failed: bool, clock: &impl Clock) {
        if !failed {
            // Loading first keeps the healthy path free of shared writes.
            if self.failures.load(Relaxed) != 0 {
                self.failures.store(0, Relaxed);
            }
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures == self.failure_threshold {
            self.try_again_at.store(self.next_try(clock.now()), Release);
        }
    }

    /// Admits the next attempt at once, because there are signs that it would succeed.
    pub fn allow_retry_now(&self) {
        if self.is_open() {
            self.try_again_at.store(0, Release);
        }
    }

    fn next_try(&self, now: Timestamp) -> u64 {
        (now + self.retry_interval).as_micros()
    }
}
