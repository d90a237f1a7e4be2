//! Places of concurrency limits: acquire, renew while the work runs, release.

use std::time::Duration;

use super::{BatchLimiter, ReserveError, SettleError, reservation::is_bounded};
use crate::{
    Batch, Check, Decision, LeaseId, Outcome, OwnedBatch, Place, Standing, StoreError, Timestamp,
    Verb,
};

/// The places that an acquisition holds. They are free when it is released, or when its lease ends.
#[derive(Clone, Debug)]
#[must_use = "places are held until the lease ends"]
pub struct Permit {
    id: LeaseId,
    /// `None` if the batch had no concurrency limits.
    places: Option<OwnedBatch>,
    expires_at: Timestamp,
}

impl BatchLimiter {
    /// Takes the cost of every check if all limits admit it: places of concurrency limits under a
    /// lease, units of other limits for good.
    ///
    /// [Renew](Self::renew) the lease while the work runs, and [release](Self::release) it
    /// afterwards. If this process ends before, the places are free when the lease ends.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use headgate::{Batch, Check, Cost, Key, Limit, BatchLimiter};
    /// # use headgate_store_memory::MemoryStore;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let limiter = BatchLimiter::new(MemoryStore::default());
    /// let (lease, longest) = (Duration::from_secs(10), Duration::from_secs(60));
    /// let limit = Limit::concurrency(1, longest)?;
    /// let batch = Batch::from(Check::new(Key::new("exports:tenant-7")?, &limit, Cost::ONE)?);
    ///
    /// let (permit, _) = limiter.acquire(&batch, lease).await?;
    /// assert!(limiter.acquire(&batch, lease).await.is_err(), "one at a time");
    /// limiter.renew(&permit, lease).await?;
    /// assert!(limiter.release(permit).await?);
    /// assert_eq!(limiter.peek(&batch).await?.remaining, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn acquire(
        &self,
        batch: &Batch<'_>,
        lease: Duration,
    ) -> Result<(Permit, Decision), ReserveError> {
        if !is_bounded(lease) {
            return Err(ReserveError::Lease(lease));
        }
        let place = Place { id: LeaseId::random(), lease };
        let decision = Decision::fold(&self.apply(Verb::Acquire, &batch.holding(place)).await?);
        if !decision.allowed {
            return Err(ReserveError::Denied(decision));
        }
        Ok((Permit::of(batch, place, decision.at), decision))
    }

    /// Makes the lease of a permit end `lease` from now, and returns that time by the store's
    /// clock.
    ///
    /// # Errors
    ///
    /// [`SettleError::Ended`] if it has ended: the places may have another holder, so the work
    /// should stop.
    pub async fn renew(&self, permit: &Permit, lease: Duration) -> Result<Timestamp, SettleError> {
        if !is_bounded(lease) {
            return Err(SettleError::Lease(lease));
        }
        let Some(places) = &permit.places else { return Ok(permit.expires_at) };
        let spaces = places.spaces();
        let verb = Verb::Use { id: permit.id, lease };
        let batch = places.as_batch(&spaces);
        let outcomes = self.apply(verb, &batch).await?;
        if !outcomes.iter().all(|outcome| outcome.allowed) {
            return Err(SettleError::Ended);
        }
        let ends = batch.checks().iter().zip(&outcomes).map(|(it, outcome)| it.end(outcome, lease));
        ends.min().ok_or(SettleError::Ended)
    }

    /// Frees the places of a permit. Returns `false` if its lease had ended.
    pub async fn release(&self, permit: Permit) -> Result<bool, StoreError> {
        let Some(places) = &permit.places else { return Ok(true) };
        let spaces = places.spaces();
        let outcomes = self.apply(Verb::Cancel(permit.id), &places.as_batch(&spaces)).await?;
        Ok(outcomes.iter().all(|outcome| outcome.allowed))
    }
}

// === impl Permit ===

impl Permit {
    fn of(batch: &Batch<'_>, place: Place, at: Timestamp) -> Self {
        let held = || batch.checks().iter().filter(|check| is_held(check));
        let longest = held().filter_map(|check| check.limit().window()).min();
        let expires_at = at + place.lease.min(longest.unwrap_or(place.lease));
        let places = Batch::new(held().copied()).ok().map(|batch| batch.to_owned());
        Self { id: place.id, places, expires_at }
    }

    /// Identifies the lease.
    pub const fn id(&self) -> LeaseId {
        self.id
    }

    /// Time at which its lease ends unless it is renewed, by the store's clock.
    pub const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }
}

fn is_held(check: &Check<'_>) -> bool {
    check.limit().places().is_some() && !check.mode().is_read_only()
}

impl Check<'_> {
    /// The end of a lease that was taken or renewed with this outcome. A failure mode may have
    /// answered for the store.
    fn end(&self, outcome: &Outcome, lease: Duration) -> Timestamp {
        match outcome.reservation() {
            Some(Standing::Pending { expires_at, .. }) => expires_at,
            _ => outcome.at + self.limit().window().map_or(lease, |longest| longest.min(lease)),
        }
    }
}
