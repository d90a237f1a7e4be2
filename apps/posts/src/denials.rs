//! Denials that outlast an outage of the store.

use std::{fmt, sync::Arc, time::Duration};

use headgate::{
    Batch, Clock, Degraded, DenialCache, FailCause, Outcome, Outcomes, Source, Store, StoreError,
    StoreFuture, Verb,
};

/// A store whose denials are repeated while it fails, until they expire. An author whom it has
/// denied gains nothing by an outage. The memory for them is bounded, see [`DenialCache`].
pub struct RememberedDenials<S> {
    store: S,
    clock: Arc<dyn Clock>,
    denials: DenialCache,
}

// === impl RememberedDenials ===

impl<S: Store> RememberedDenials<S> {
    /// Remembers the denials of `store`.
    pub fn new(store: S, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, denials: DenialCache::new() }
    }

    /// Answers for the store, if it has denied a check of `batch` and that has not expired.
    fn repeat(&self, batch: &Batch<'_>, error: &StoreError) -> Option<Outcomes> {
        let (at, steady) = (self.clock.now(), self.clock.steady());
        let degraded = Some(Degraded::new(Source::RememberedDenial, FailCause::of(error)));
        let outcomes = batch.checks().iter().map(|check| {
            let limit = check.limit().capacity();
            match self.denials.find(check, steady) {
                Some(denial) => {
                    let (reset, retry) = (denial.reset_after, denial.retry_after);
                    let mut outcome = Outcome::denial(limit, 0, reset, retry, at);
                    outcome.degraded = degraded;
                    outcome
                }
                None => Outcome::admission(limit, limit, Duration::ZERO, at),
            }
        });
        let outcomes: Outcomes = outcomes.collect();
        outcomes.iter().any(|outcome| !outcome.allowed).then_some(outcomes)
    }
}

impl<S: Store> Store for RememberedDenials<S> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(async move {
            match self.store.apply(verb, batch).await {
                Ok(outcomes) => {
                    self.denials.learn(verb, batch, &outcomes, self.clock.steady());
                    Ok(outcomes)
                }
                Err(error) if verb.is_admission() => self.repeat(batch, &error).ok_or(error),
                Err(error) => Err(error),
            }
        })
    }
}

impl<S> fmt::Debug for RememberedDenials<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RememberedDenials").finish_non_exhaustive()
    }
}
