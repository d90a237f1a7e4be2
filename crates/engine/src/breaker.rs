//! A store that leaves a failing store alone, so that an outage costs no time-outs.

use std::{
    fmt,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    time::Duration,
};

use crate::{Batch, Clock, Store, StoreError, StoreFuture, Timestamp, Verb};

/// Asks the inner store until it has failed `tolerance` times in a row; then
/// answers [`StoreError::BreakerOpen`] at once, and lets one call through every
/// `pause` to see whether the store is back.
///
/// A call that nobody waits for any more counts neither as failed nor as answered: by hanging up, callers could
/// have the store left alone otherwise.
#[derive(Debug)]
pub struct Breaker<S, C> {
    inner: S,
    clock: C,
    tolerance: u32,
    pause: Duration,
    failures: AtomicU32,
    /// When the next call may try a store that is being left alone, in microseconds.
    try_again_at: AtomicU64,
    observer: Observer,
}

/// Who is told how long calls take, if anybody is.
struct Observer(Option<Box<dyn Fn(Duration) + Send + Sync>>);

impl<S: Store, C: Clock> Breaker<S, C> {
    /// Failures in a row after which the store is left alone.
    pub const TOLERANCE: u32 = 5;

    /// How long the store is left alone between tries.
    pub const PAUSE: Duration = Duration::from_millis(500);

    /// Shields `inner` with the default tolerance and pause.
    pub const fn new(inner: S, clock: C) -> Self {
        Self {
            inner,
            clock,
            tolerance: Self::TOLERANCE,
            pause: Self::PAUSE,
            failures: AtomicU32::new(0),
            try_again_at: AtomicU64::new(0),
            observer: Observer(None),
        }
    }

    /// With another tolerance and pause.
    #[must_use]
    pub fn with(self, tolerance: u32, pause: Duration) -> Self {
        Self { tolerance, pause, ..self }
    }

    /// With somebody who is told how long each call takes that reaches the store, failed ones included.
    #[must_use]
    pub fn observed(self, observer: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { observer: Observer(Some(Box::new(observer))), ..self }
    }

    /// The store behind the breaker.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Whether the store is being left alone.
    pub fn is_open(&self) -> bool {
        self.failures.load(Relaxed) >= self.tolerance
    }

    /// Whether this call may reach the store. Of many, one wins the right to try.
    fn admits(&self) -> bool {
        if !self.is_open() {
            return true;
        }
        // Before the clock: a time that somebody else sets meanwhile is not later than a pause from now.
        let due = self.try_again_at.load(Acquire);
        let now = self.clock.now();
        let next = self.next_try(now);
        // A time further off than a pause was told by a clock that has been set back since.
        let is_due = now.as_micros() >= due || due > next;
        is_due && self.try_again_at.compare_exchange(due, next, AcqRel, Relaxed).is_ok()
    }

    fn record(&self, failed: bool) {
        if !failed {
            // A load before the store keeps the healthy path free of shared writes.
            if self.failures.load(Relaxed) != 0 {
                self.failures.store(0, Relaxed);
            }
            return;
        }
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures == self.tolerance {
            self.try_again_at.store(self.next_try(self.clock.now()), Release);
        }
    }

    fn next_try(&self, now: Timestamp) -> u64 {
        (now + self.pause).as_micros()
    }
}

impl<S: Store, C: Clock> Store for Breaker<S, C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if !self.admits() {
            return StoreFuture::ready(Err(StoreError::BreakerOpen));
        }
        let observed = self.observer.0.as_ref().map(|observer| (observer, self.clock.steady()));
        self.inner.apply(verb, batch).map(move |answer| {
            if let Some((observer, began)) = observed {
                observer(Duration::from_micros(self.clock.steady().saturating_sub(began)));
            }
            self.record(answer.as_ref().is_err_and(StoreError::is_outage));
            answer
        })
    }
}

// === impl Observer ===

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
