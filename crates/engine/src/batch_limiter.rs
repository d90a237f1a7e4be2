//! Checks, reservations, refunds and resets of batches.

use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{Batch, Decision, Lease, LeaseId, Outcomes, OwnedBatch, Store, StoreError, Verb};

/// A store with a method for every verb, which folds the answers to a [`Batch`] into one
/// [`Decision`].
///
/// If all requests are checked against the same limits, a [`RateLimiter`](crate::RateLimiter) is
/// simpler.
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
/// use headgate_store_memory::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = BatchLimiter::new(MemoryStore::default());
/// let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
///
/// let check = Check::new(Key::new("user:42")?, &limit, Cost::new(5)?)?;
/// let decision = limiter.check(&Batch::from(check)).await?;
/// assert!(decision.allowed && decision.remaining == 95);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BatchLimiter {
    store: Arc<dyn Store>,
}

/// Units that were taken and are returned unless they are committed in time.
#[derive(Clone, Debug)]
#[must_use = "a reservation that is not committed expires"]
pub struct Reservation {
    id: LeaseId,
    held: OwnedBatch,
}

/// Error for a reservation that was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReserveError {
    /// A limit denied the request.
    #[error("denied: retry in {:?}", .0.retry_after)]
    Denied(Decision),
    /// The lease is too short or too long.
    #[error("a lease must be between 1ms and {max:?}, got {0:?}", max = Lease::MAX_DURATION)]
    Lease(Duration),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BatchLimiter {
    /// A limiter on `store`.
    pub fn new(store: impl Store + 'static) -> Self {
        Self { store: Arc::new(store) }
    }

    /// Takes the cost of every check if all limits admit it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// // With a limit of 2 a minute:
    /// assert!(limiter.check(&batch).await?.allowed);
    /// assert!(limiter.check(&batch).await?.allowed);
    /// let denied = limiter.check(&batch).await?;
    /// assert!(!denied.allowed);
    /// assert_eq!(denied.retry_after_secs(), 30);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn check(&self, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        self.decide(Verb::Acquire, batch).await
    }

    /// Returns what [`check`](Self::check) would, and takes nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 2);
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn peek(&self, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        self.decide(Verb::Peek, batch).await
    }

    /// Takes the cost of every check if all limits admit it, and returns it after `lease` unless
    /// the reservation is committed.
    ///
    /// For work that may fail: reserve, do it, then [`commit`](Self::commit) or
    /// [`cancel`](Self::cancel).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// let (reservation, decision) = limiter.reserve(&batch, Duration::from_secs(30)).await?;
    /// assert_eq!(decision.remaining, 1);
    /// // The work succeeded: keep the units.
    /// assert!(limiter.commit(reservation).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reserve(
        &self,
        batch: &Batch<'_>,
        lease: Duration,
    ) -> Result<(Reservation, Decision), ReserveError> {
        if !(Duration::from_millis(1)..=Lease::MAX_DURATION).contains(&lease) {
            return Err(ReserveError::Lease(lease));
        }
        let id = LeaseId::random();
        let decision = self.decide(Verb::Reserve { id, lease }, batch).await?;
        if !decision.allowed {
            return Err(ReserveError::Denied(decision));
        }
        Ok((Reservation { id, held: batch.to_owned() }, decision))
    }

    /// Keeps the reserved units. Returns `false` if the reservation had expired.
    ///
    /// [`reserve`](Self::reserve) has an example.
    pub async fn commit(&self, reservation: Reservation) -> Result<bool, StoreError> {
        self.settle(Verb::Commit(reservation.id), &reservation).await
    }

    /// Gives the reserved units back. Returns `false` if the reservation had expired.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// let (reservation, _) = limiter.reserve(&batch, Duration::from_secs(30)).await?;
    /// // The work failed: return the units.
    /// assert!(limiter.cancel(reservation).await?);
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, reservation: Reservation) -> Result<bool, StoreError> {
        self.settle(Verb::Cancel(reservation.id), &reservation).await
    }

    /// Gives acquired units back. The decision reports the units left afterwards.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// limiter.check(&batch).await?;
    /// assert_eq!(limiter.refund(&batch).await?.remaining, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn refund(&self, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        self.decide(Verb::Refund, batch).await
    }

    /// Deletes the state of every subject in the batch.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// limiter.check(&batch).await?;
    /// limiter.check(&batch).await?;
    /// limiter.reset(&batch).await?;
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reset(&self, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        self.decide(Verb::Reset, batch).await
    }

    /// Applies `verb` and returns the outcome of each limit.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// # let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
    /// # let batch = Batch::from(Check::new(Key::new("user:42")?, &limit, Cost::ONE)?);
    /// let outcomes = limiter.apply(headgate::Verb::Acquire, &batch).await?;
    /// assert_eq!((outcomes.len(), outcomes[0].remaining), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        self.store.apply(verb, batch).await
    }

    async fn settle(&self, verb: Verb, reservation: &Reservation) -> Result<bool, StoreError> {
        let spaces = reservation.held.spaces();
        Ok(self.decide(verb, &reservation.held.as_batch(&spaces)).await?.allowed)
    }

    async fn decide(&self, verb: Verb, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        Ok(Decision::fold(&self.apply(verb, batch).await?))
    }
}

impl std::fmt::Debug for BatchLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchLimiter").finish_non_exhaustive()
    }
}
