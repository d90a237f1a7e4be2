//! A store that leaves a failing store alone, so that an outage costs no time-outs.

mod circuit;

use std::{fmt, time::Duration};

use crate::{Batch, Clock, Store, StoreError, StoreFuture, Verb};

pub use circuit::Circuit;

/// Asks the inner store until it has failed `tolerance` times in a row; then
/// answers [`StoreError::BreakerOpen`] at once, and lets one call through every
/// `pause` to see whether the store is back.
///
/// A store that [has breakers](Store::has_breakers) of its own is always asked.
///
/// A call that nobody waits for any more counts neither as failed nor as answered: by hanging up, callers could
/// have the store left alone otherwise.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Breaker, Limiter, SystemClock};
/// use headgate_store_memory::MemoryStore;
///
/// // Stands for a store that can fail.
/// let store = MemoryStore::default();
/// let breaker = Breaker::new(store, SystemClock::new())
///     .with(3, Duration::from_secs(1))
///     .observed(|took| println!("the store took {took:?}"));
/// assert!(!breaker.is_open());
/// let limiter = Limiter::new(breaker);
/// # drop(limiter);
/// ```
#[derive(Debug)]
pub struct Breaker<S, C> {
    inner: S,
    clock: C,
    circuit: Circuit,
    observer: Observer,
}

/// Who is told how long calls take, if anybody is.
struct Observer(Option<Box<dyn Fn(Duration) + Send + Sync>>);

impl<S: Store, C: Clock> Breaker<S, C> {
    /// Failures in a row after which the store is left alone.
    pub const TOLERANCE: u32 = Circuit::TOLERANCE;

    /// How long the store is left alone between tries.
    pub const PAUSE: Duration = Circuit::PAUSE;

    /// Shields `inner` with the default tolerance and pause.
    pub const fn new(inner: S, clock: C) -> Self {
        let circuit = Circuit::new(Self::TOLERANCE, Self::PAUSE);
        Self { inner, clock, circuit, observer: Observer(None) }
    }

    /// With another tolerance and pause.
    #[must_use]
    pub fn with(self, tolerance: u32, pause: Duration) -> Self {
        Self { circuit: Circuit::new(tolerance, pause), ..self }
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
