//! A circuit breaker: while a store is failing, calls fail at once instead of timing out.

mod circuit;

use std::{fmt, time::Duration};

use crate::{Batch, Check, Clock, HoldersFuture, Store, StoreError, StoreFuture, Verb};

pub use circuit::Circuit;

/// A circuit breaker around a store.
///
/// After a number of consecutive failures it opens: calls fail with [`StoreError::BreakerOpen`] at
/// once, and one call in every retry interval is let through to test whether the store has
/// recovered. See [`Circuit`].
///
/// A store that [has breakers](Store::has_breakers) of its own is always called.
///
/// A call whose future is dropped counts neither as a failure nor as a success. Otherwise clients
/// could open the breaker by closing their connections.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{BatchLimiter, Breaker, SystemClock};
/// use headgate_store_memory::MemoryStore;
///
/// // Stands for a store that can fail.
/// let store = MemoryStore::default();
/// let breaker = Breaker::new(store, SystemClock::new())
///     .with_thresholds(3, Duration::from_secs(1))
///     .observe_latency(|latency| println!("the store took {latency:?}"));
/// assert!(!breaker.is_open());
/// let limiter = BatchLimiter::new(breaker);
/// # drop(limiter);
/// ```
#[derive(Debug)]
pub struct Breaker<S, C> {
    inner: S,
    clock: C,
    circuit: Circuit,
    observer: Observer,
}

/// A callback for the latency of calls.
struct Observer(Option<Box<dyn Fn(Duration) + Send + Sync>>);

impl<S: Store, C: Clock> Breaker<S, C> {
    /// A breaker around `inner` with the default thresholds of [`Circuit`].
    pub const fn new(inner: S, clock: C) -> Self {
        let circuit = Circuit::new(Circuit::FAILURE_THRESHOLD, Circuit::RETRY_INTERVAL);
        Self { inner, clock, circuit, observer: Observer(None) }
    }

    /// Opens after `failures` consecutive failures, and retries every `retry_interval`.
    #[must_use]
    pub fn with_thresholds(self, failures: u32, retry_interval: Duration) -> Self {
        Self { circuit: Circuit::new(failures, retry_interval), ..self }
    }

    /// Calls `observer` with the latency of every call that reaches the store, failed ones
    /// included.
    #[must_use]
    pub fn observe_latency(self, observer: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self { observer: Observer(Some(Box::new(observer))), ..self }
    }

    /// The store behind the breaker.
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    /// Returns `true` if the breaker is open.
    pub fn is_open(&self) -> bool {
        self.circuit.is_open()
    }
}

impl<S: Store, C: Clock> Store for Breaker<S, C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        let is_needed = !self.inner.has_breakers();
        if is_needed && !self.circuit.admits(&self.clock) {
            return StoreFuture::ready(Err(StoreError::BreakerOpen));
        }
        let observed = self.observer.0.as_ref().map(|observer| (observer, self.clock.steady()));
        self.inner.apply(verb, batch).map(move |answer| {
            let was_sent = !answer.as_ref().is_err_and(StoreError::is_unsent);
            if let Some((observer, began)) = observed
                && was_sent
            {
                observer(Duration::from_micros(self.clock.steady().saturating_sub(began)));
            }
            if is_needed {
                let failed = answer.as_ref().is_err_and(StoreError::is_outage);
                self.circuit.record(failed, &self.clock);
            }
            answer
        })
    }

    fn holders<'a>(&'a self, check: Check<'a>, max: usize) -> HoldersFuture<'a> {
        let is_needed = !self.inner.has_breakers();
        Box::pin(async move {
            if is_needed && !self.circuit.admits(&self.clock) {
                return Err(StoreError::BreakerOpen);
            }
            let answer = self.inner.holders(check, max).await;
            if is_needed {
                let failed = answer.as_ref().is_err_and(StoreError::is_outage);
                self.circuit.record(failed, &self.clock);
            }
            answer
        })
    }

    fn has_breakers(&self) -> bool {
        true
    }
}

// === impl Observer ===

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
