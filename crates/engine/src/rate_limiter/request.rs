//! A request to a [`RateLimiter`], before it is sent.

use std::{
    collections::hash_map::RandomState,
    future::{Future, IntoFuture},
    hash::BuildHasher,
    pin::Pin,
    time::Duration,
};

use super::{RateLimiter, RateLimiterError};
use crate::{
    Batch, Check, Cost, Decision, Key, KeySpace, Limit, Store, SyncStore, Timestamp, Verb,
};

/// A request to a [`RateLimiter`]: await it, or call [`now`](Self::now).
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited or `now` is called"]
pub struct Request<'a, S> {
    limiter: &'a RateLimiter<S>,
    verb: Verb,
    key: &'a str,
    cost: u64,
    jitter: Duration,
    taken_at: Option<Timestamp>,
}

type Answer = Result<Decision, RateLimiterError>;

impl<'a, S> Request<'a, S> {
    pub(super) const fn new(limiter: &'a RateLimiter<S>, verb: Verb, key: &'a str) -> Self {
        Self { limiter, verb, key, cost: 1, jitter: Duration::ZERO, taken_at: None }
    }

    pub(super) const fn taken_at(self, at: Timestamp) -> Self {
        Self { taken_at: Some(at), ..self }
    }

    /// Sets the number of units; 1 by default.
    pub const fn cost(self, units: u64) -> Self {
        Self { cost: units, ..self }
    }

    /// Makes [`until_ready`](Self::until_ready) wait longer by a random time up to `max`, so that
    /// callers that wait for the same key do not all wake up at once.
    pub const fn jitter(self, max: Duration) -> Self {
        Self { jitter: max, ..self }
    }

    fn key_and_cost(&self) -> Result<(Key<'a>, Cost), RateLimiterError> {
        Ok((Key::new(self.key)?, Cost::new(self.cost)?))
    }

    fn check<'c>(
        &self,
        (key, cost): (Key<'c>, Cost),
        limit: &'c Limit,
        space: &'c KeySpace<'c>,
    ) -> Result<Check<'c>, RateLimiterError> {
        let check = Check::new(key.within(space), limit, cost)?;
        let check = check.with_fail_mode(self.limiter.fail_mode);
        Ok(self.taken_at.map_or(check, |at| check.taken_at(at)))
    }

    fn batch<'c>(&self, spaces: &'c [KeySpace<'c>]) -> Result<Batch<'c>, RateLimiterError>
    where
        'a: 'c,
    {
        let key_and_cost = self.key_and_cost()?;
        let checks = self.limiter.limits.iter().zip(spaces);
        let checks = checks.map(|(limit, space)| self.check(key_and_cost, limit, space));
        Ok(Batch::new(checks.collect::<Result<Vec<_>, _>>()?)?)
    }
}

impl<S: Store> Request<'_, S> {
    /// Repeats the request until it is admitted, and sleeps in between for as long as the denial
    /// says.
    ///
    /// The sleep function is that of your async runtime: `tokio::time::sleep`, for example.
    /// Waiting callers are not queued: the first to ask after the units return gets them.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Limit, RateLimiter};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::leaky_bucket(1_000, Duration::from_secs(1))?;
    /// let limiter = RateLimiter::new(limit, MemoryStore::default());
    ///
    /// let request = limiter.check("api.example.com").jitter(Duration::from_millis(50));
    /// let decision = request.until_ready(tokio::time::sleep).await?;
    /// assert!(decision.allowed);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for a single request. An error of the store ends the wait.
    pub async fn until_ready<F>(self, mut sleep: impl FnMut(Duration) -> F) -> Answer
    where
        F: Future<Output = ()>,
    {
        loop {
            let decision = self.send().await?;
            if decision.allowed {
                return Ok(decision);
            }
            sleep(decision.retry_after.saturating_add(random_up_to(self.jitter))).await;
        }
    }

    async fn send(&self) -> Answer {
        let spaces = self.limiter.spaces();
        let batch = self.batch(&spaces)?;
        Ok(Decision::fold(&self.limiter.store.apply(self.verb, &batch).await?))
    }
}

impl<S: SyncStore> Request<'_, S> {
    /// Returns the decision without waiting, as stores in memory can.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use headgate::{Limit, RateLimiter};
    /// use headgate_store_memory::MemoryStore;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limit = Limit::token_bucket(100, Duration::from_secs(60))?;
    /// let limiter = RateLimiter::new(limit, MemoryStore::default());
    /// assert_eq!(limiter.check("user:42").cost(5).now()?.remaining, 95);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn now(self) -> Result<Decision, RateLimiterError> {
        let RateLimiter { store, limits, prefix, suffixes, .. } = self.limiter;
        if let ([limit], [suffix]) = (&**limits, &**suffixes) {
            let space = KeySpace::new(prefix, suffix);
            let check = self.check(self.key_and_cost()?, limit, &space)?;
            return Ok(store.apply_one(self.verb, check).into());
        }
        let spaces = self.limiter.spaces();
        Ok(Decision::fold(&store.apply_now(self.verb, &self.batch(&spaces)?)))
    }
}

impl<'a, S: Store> IntoFuture for Request<'a, S> {
    type Output = Result<Decision, RateLimiterError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.send().await })
    }
}

/// A random time from zero to `max`.
fn random_up_to(max: Duration) -> Duration {
    if max.is_zero() {
        return max;
    }
    let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
    // Every `RandomState` has a new key.
    let random = RandomState::new().hash_one(0_u8);
    Duration::from_nanos(((u128::from(nanos) * u128::from(random)) >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_random_and_bounded() {
        let max = Duration::from_millis(50);
        let waits: Vec<Duration> = (0..100).map(|_| random_up_to(max)).collect();
        assert!(waits.iter().all(|wait| *wait < max));
        assert!(
            waits.iter().any(|wait| *wait > max / 2) && waits.iter().any(|wait| *wait < max / 2)
        );
        assert_eq!(random_up_to(Duration::ZERO), Duration::ZERO);
    }
}
