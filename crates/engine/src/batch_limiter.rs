//! Checks, reservations, refunds and resets of batches.

mod permit;
mod reservation;

use std::sync::Arc;

use crate::{Batch, Check, Decision, Holders, Outcomes, Store, StoreError, Verb};

pub use permit::Permit;
pub use reservation::{Reservation, ReserveError, SettleError, Settlement, Usage};

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

    /// Gives acquired units back, as far as they still count:
    /// [`TakenAt`](crate::algorithm::TakenAt) says how long that is. The decision reports the
    /// units left afterwards.
    ///
    /// Every check says when its units were taken. A check that does not returns units that count
    /// now, whenever they were taken: use that only if nothing else can have happened since.
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
    /// # let check = Check::new(Key::new("user:42")?, &limit, Cost::ONE)?;
    /// let taken = limiter.check(&batch).await?;
    /// limiter.refund(&Batch::from(check.taken_at(taken.at))).await?;
    /// assert!(limiter.check(&batch).await?.allowed && limiter.check(&batch).await?.allowed);
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

    /// Lists the holders of a concurrency limit, those whose leases end first: at most `max` of
    /// them, and no more than [`Holders::MAX_LISTED`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// let limit = Limit::concurrency(10, Duration::from_secs(60))?;
    /// let check = Check::new(Key::new("exports:tenant-7")?, &limit, Cost::ONE)?;
    /// let (permit, _) = limiter.acquire(&Batch::from(check), Duration::from_secs(30)).await?;
    /// let holders = limiter.holders(check, 100).await?;
    /// assert_eq!((holders.total, holders.taken, holders.first[0].places), (1, 1, 1));
    /// # limiter.release(permit).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn holders(&self, check: Check<'_>, max: usize) -> Result<Holders, StoreError> {
        if check.limit().places().is_none() {
            return Err(StoreError::Unsupported("only a concurrency limit has holders"));
        }
        self.store.holders(check, max.min(Holders::MAX_LISTED)).await
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

    async fn decide(&self, verb: Verb, batch: &Batch<'_>) -> Result<Decision, StoreError> {
        Ok(Decision::fold(&self.apply(verb, batch).await?))
    }
}

impl std::fmt::Debug for BatchLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchLimiter").finish_non_exhaustive()
    }
}
