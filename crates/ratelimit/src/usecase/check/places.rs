//! Places of concurrency limits: acquire, renew while the work runs, release.

use std::time::Duration;

use headgate::{Degraded, Place, Standing, Timestamp, Verb};

use super::{
    CheckRateLimit, ReservationError, ReservationRequest, Verdict,
    reservations::{Plan, tally, validate},
};
use crate::{PlaceLeaseId, ReservationId, reservation::ReservedLimit};

/// The answer to a request for places.
#[derive(Clone, Debug)]
pub struct Acquired {
    /// The lease; `None` if it was denied.
    pub lease: Option<PlaceLease>,
    /// The decision of each check; `None` if no rule matches.
    pub verdicts: Vec<Option<Verdict>>,
}

/// A lease under which places are held.
#[derive(Clone, Debug)]
pub struct PlaceLease {
    /// Its id.
    pub id: PlaceLeaseId,
    /// Time at which it ends unless it is renewed, by the store's clock.
    pub expires_at: Timestamp,
    /// Time for which it lasts.
    pub length: Duration,
}

/// A renewed lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Time at which it ends unless it is renewed again, by the store's clock.
    pub expires_at: Timestamp,
    /// Time for which it lasts.
    pub length: Duration,
    /// Source and cause of the answer, if the store could not give it.
    pub degraded: Option<Degraded>,
}

impl CheckRateLimit {
    /// Takes a place under every concurrency limit of the checks, and their costs under the other
    /// limits, all or nothing, in one store call.
    ///
    /// The request's TTL is the length of the lease; no limit holds a place for longer than its
    /// window. A repeated request with the same request id renews the lease, and takes no place.
    pub async fn acquire(
        &self,
        request: &ReservationRequest<'_>,
    ) -> Result<Acquired, ReservationError> {
        validate(request)?;
        let snapshot = self.catalog.load();
        let attributes: Vec<_> =
            request.checks.iter().map(|check| check.attributes_for(&snapshot)).collect();
        let mut plan = Plan::default();
        for (i, (check, own)) in request.checks.iter().zip(&attributes).enumerate() {
            plan.add(check, self.resolve(&snapshot, check, own))
                .map_err(|error| ReservationError::Check(i, error))?;
        }
        let places = plan.limits().into_iter().filter(ReservedLimit::holds_places).collect();
        let id = PlaceLeaseId::new(request.request_id, request.ttl, plan.len(), places)?;
        let described = id.described();
        let place = Place { id: described.lease(), lease: request.ttl };
        let outcomes = plan.acquire(&self.limiter, place).await?;
        let verdicts = plan.verdicts(self, &outcomes);
        tally(&verdicts);
        if !outcomes.iter().all(|outcome| outcome.allowed) {
            return Ok(Acquired { lease: None, verdicts });
        }
        let now = outcomes.first().map_or_else(|| self.catalog.now(), |outcome| outcome.at);
        let length = longest(described, request.ttl);
        Ok(Acquired { lease: Some(PlaceLease { id, expires_at: now + length, length }), verdicts })
    }

    /// Makes a lease end `lease` from now, or as long after as it was acquired for.
    pub async fn renew_lease(
        &self,
        id: &PlaceLeaseId,
        lease: Option<Duration>,
    ) -> Result<Renewed, ReservationError> {
        let (lease, described) = (lease.unwrap_or(id.duration()), id.described());
        let length = longest(described, lease);
        if !(ReservationId::MIN_TTL..=ReservationId::MAX_TTL).contains(&lease) {
            return Err(ReservationError::Ttl);
        }
        let verb = Verb::Use { id: described.lease(), lease };
        let outcomes = self.change(described, verb, None).await?;
        let ends = outcomes.iter().map(|outcome| match outcome.reservation() {
            Some(Standing::Pending { expires_at, .. }) => expires_at,
            // A failure mode answered for the store.
            _ => outcome.at + length,
        });
        let expires_at = ends.min().unwrap_or_else(|| self.catalog.now() + length);
        Ok(Renewed { expires_at, length, degraded: outcomes.iter().find_map(|it| it.degraded) })
    }

    /// Frees the places of a lease. Returns `false` if it had ended.
    pub async fn release_lease(&self, id: &PlaceLeaseId) -> Result<bool, ReservationError> {
        let described = id.described();
        match self.change(described, Verb::Cancel(described.lease()), None).await {
            Ok(_) => Ok(true),
            Err(ReservationError::Ended) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The length of a lease, given the longest one of each limit.
fn longest(id: &ReservationId, lease: Duration) -> Duration {
    let windows = id.limits().iter().map(ReservedLimit::window);
    windows.fold(lease, Ord::min)
}

#[cfg(test)]
mod tests;
