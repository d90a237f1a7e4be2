//! Limits that are checked by key: the type most programs start with.

mod error;
mod request;

use smallvec::SmallVec;

use crate::{BatchError, FailMode, KeySpace, Limit, Timestamp, Verb, limit::Parameters};

pub use error::RateLimiterError;
pub use request::Request;

/// One or more limits that apply to every key, with the state of each key in a store.
///
/// Every method returns a [`Request`]. Await it on any store, or call [`now`](Request::now) on a
/// store that is in memory:
///
/// ```
/// use std::time::Duration;
///
/// use headgate::{Limit, RateLimiter};
/// use headgate_store_memory::MemoryStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limit = Limit::token_bucket(2, Duration::from_secs(60))?;
/// let limiter = RateLimiter::new(limit, MemoryStore::default());
///
/// assert!(limiter.check("user:42").now()?.allowed);
/// assert!(limiter.check("user:42").now()?.allowed);
///
/// let denied = limiter.check("user:42").now()?;
/// assert!(!denied.allowed);
/// assert_eq!((denied.remaining, denied.retry_after_secs()), (0, 30));
/// assert!(limiter.check("user:43").now()?.allowed, "every key has its own units");
/// # Ok(())
/// # }
/// ```
///
/// Limits that apply to different keys of one request, such as the user and the tenant, are checked
/// together by a [`BatchLimiter`](crate::BatchLimiter).
#[derive(Clone, Debug)]
pub struct RateLimiter<S> {
    store: S,
    limits: Box<[Limit]>,
    prefix: Box<str>,
    /// Key suffix of each limit, which separates the states of one key in the store.
    suffixes: Box<[Box<str>]>,
    fail_mode: FailMode,
}

impl<S> RateLimiter<S> {
    /// A limiter with one limit.
    pub fn new(limit: Limit, store: S) -> Self {
        // The key is used as it is: one part is hashed faster than three.
        Self::with_suffixes([limit].into(), [Box::default()].into(), store)
    }

    /// A limiter with several limits. A check takes units from all of them, or from none.
    ///
    /// Two limits with the same algorithm and window are a [`BatchError::DuplicateKey`]: they would
    /// share one state in the store. Buckets with the same window need different bursts: see
    /// [`Limit::with_burst`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Limit, RateLimiter};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let per_second = Limit::token_bucket(10, Duration::from_secs(1))?;
    /// let per_hour = Limit::sliding_window(12, Duration::from_secs(3600))?;
    /// let limiter = RateLimiter::all([per_second, per_hour], MemoryStore::default())?;
    ///
    /// assert!(limiter.check("user:42").cost(10).now()?.allowed);
    /// let denied = limiter.check("user:42").cost(3).now()?;
    /// assert!(!denied.allowed);
    /// assert_eq!(denied.decided_by, 1, "the wait is longest for the limit per hour");
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(limits: impl IntoIterator<Item = Limit>, store: S) -> Result<Self, BatchError> {
        let limits: Box<[Limit]> = limits.into_iter().collect();
        let suffixes: Box<[Box<str>]> = limits.iter().map(suffix).collect();
        let duplicate = (1..suffixes.len()).find(|i| suffixes[..*i].contains(&suffixes[*i]));
        match (limits.len(), duplicate) {
            (0, _) => Err(BatchError::Empty),
            (n, _) if n > crate::Batch::MAX_CHECKS => Err(BatchError::TooMany(n)),
            (_, Some(i)) => Err(BatchError::DuplicateKey(suffixes[i].to_string())),
            (1, None) => Ok(Self::with_suffixes(limits, [Box::default()].into(), store)),
            (_, None) => Ok(Self::with_suffixes(limits, suffixes, store)),
        }
    }

    fn with_suffixes(limits: Box<[Limit]>, suffixes: Box<[Box<str>]>, store: S) -> Self {
        Self { store, limits, prefix: Box::default(), suffixes, fail_mode: FailMode::default() }
    }

    /// Puts `prefix` before every key. Limiters that share a store need different prefixes.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    ///
    /// use headgate::{Limit, RateLimiter};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Arc::new(MemoryStore::default());
    /// let once = Limit::cooldown(Duration::from_secs(60))?;
    /// let posts = RateLimiter::new(once.clone(), Arc::clone(&store)).with_prefix("post:");
    /// let votes = RateLimiter::new(once, store).with_prefix("vote:");
    ///
    /// assert!(posts.check("user:42").now()?.allowed);
    /// assert!(votes.check("user:42").now()?.allowed);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_prefix(self, prefix: impl Into<Box<str>>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// Sets the failure mode, which decides while the store is unavailable, if the store has a
    /// [`FailurePolicy`](crate::FailurePolicy); [`FailMode::Capped`] by default.
    #[must_use]
    pub fn with_fail_mode(self, fail_mode: FailMode) -> Self {
        Self { fail_mode, ..self }
    }

    /// Takes units if every limit admits them: one, or [`cost`](Request::cost).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Limit, RateLimiter};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// let limiter = RateLimiter::new(limit, MemoryStore::default());
    /// let decision = limiter.check("user:42").cost(5).await?;
    /// assert_eq!(decision.remaining, 95);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn check<'a>(&'a self, key: &'a str) -> Request<'a, S> {
        Request::new(self, Verb::Acquire, key)
    }

    /// Returns what [`check`](Self::check) would, and takes nothing.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Limit, RateLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// # let limiter = RateLimiter::new(limit, MemoryStore::default());
    /// assert_eq!(limiter.peek("user:42").now()?.remaining, 100);
    /// assert_eq!(limiter.peek("user:42").now()?.remaining, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn peek<'a>(&'a self, key: &'a str) -> Request<'a, S> {
        Request::new(self, Verb::Peek, key)
    }

    /// Gives unused units back, which a check took at `taken_at`: one, or
    /// [`cost`](Request::cost). [`TakenAt`](crate::algorithm::TakenAt) says how long that counts.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Limit, RateLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// # let limiter = RateLimiter::new(limit, MemoryStore::default());
    /// let taken = limiter.check("user:42").cost(5).now()?;
    /// let refunded = limiter.refund("user:42", taken.at).cost(2).now()?;
    /// assert!(refunded.remaining >= 96);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn refund<'a>(&'a self, key: &'a str, taken_at: Timestamp) -> Request<'a, S> {
        Request::new(self, Verb::Refund, key).taken_at(taken_at)
    }

    /// Deletes the state of a key, so that all of its units are available.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Limit, RateLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// # let limiter = RateLimiter::new(limit, MemoryStore::default());
    /// limiter.check("user:42").cost(100).now()?;
    /// assert_eq!(limiter.reset("user:42").now()?.remaining, 100);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn reset<'a>(&'a self, key: &'a str) -> Request<'a, S> {
        Request::new(self, Verb::Reset, key)
    }

    /// The limits, in the order of [`Decision::decided_by`](crate::Decision::decided_by).
    pub const fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// The key space of each limit.
    fn spaces(&self) -> SmallVec<[KeySpace<'_>; 2]> {
        self.suffixes.iter().map(|suffix| KeySpace::new(&self.prefix, suffix)).collect()
    }
}

/// Key suffix of a limit: limits that count differently have different states.
fn suffix(limit: &Limit) -> Box<str> {
    let algorithm = limit.algorithm();
    match (limit.window(), limit.parameters()) {
        (Some(window), Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket))
            if bucket.burst() != bucket.rate() =>
        {
            format!(":{algorithm}:{window:?}:{}", bucket.burst()).into()
        }
        (Some(window), _) => format!(":{algorithm}:{window:?}").into(),
        (None, _) => format!(":{limit:?}").into(),
    }
}
