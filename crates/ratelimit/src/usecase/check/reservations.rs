//! Reservations: units that are taken before their use is known.

mod changes;
mod costs;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use headgate::{
    BatchLimiter, FailMode, InvalidCheck, Outcome, Place, Standing, StoreError, Timestamp, Verb,
};
use thiserror::Error;

pub use self::{
    changes::{CheckSettlement, CheckStanding, ReservationState, ReservationUse, Status},
    costs::{Charge, Costs},
};
use super::{AnyQuestion, CheckError, CheckRateLimit, Resolved, SharedBatch, Stack, Verdict};
use crate::{CompiledRule, ReservationId, ReservationIdTooLong, reservation::ReservedLimit};

/// Units to reserve.
#[derive(Clone, Debug)]
pub struct ReservationRequest<'a> {
    /// The checks that must be admitted together.
    pub checks: Vec<AnyQuestion<'a>>,
    /// Time after which the units return.
    pub ttl: Duration,
    /// Idempotency key.
    pub request_id: Option<&'a str>,
}

/// The answer to a request for units.
#[derive(Clone, Debug)]
pub struct Reserved {
    /// The reservation; `None` if it was denied.
    pub reservation: Option<Reservation>,
    /// The decision of each check; `None` if no rule matches.
    pub verdicts: Vec<Option<Verdict>>,
}

/// Units that are taken until they are settled.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// Its id.
    pub id: ReservationId,
    /// Time at which it expires, by the store's clock.
    pub expires_at: Timestamp,
    /// `true` if an earlier request with the same id made it.
    pub replayed: bool,
}

/// An error of a reservation. Nothing was taken or returned.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ReservationError {
    /// A check is invalid.
    #[error("{1}")]
    Check(usize, CheckError),
    /// The number of checks is out of range.
    #[error("checks must have 1 to {max} items", max = ReservationId::MAX_CHECKS)]
    Checks,
    /// The TTL is out of range.
    #[error(
        "ttl_seconds must be between {} and {}",
        ReservationId::MIN_TTL.as_secs(),
        ReservationId::MAX_TTL.as_secs()
    )]
    Ttl,
    /// The identifiers are too long.
    #[error(transparent)]
    TooLong(#[from] ReservationIdTooLong),
    /// The request id has made a reservation that holds other units, or that was settled.
    #[error("request_id {0} was used for another reservation, or for one that was used since")]
    RequestIdReused(String),
    /// There is not one cost for each check.
    #[error("{field} must be one number, or a list of {checks}: one for each check; got {costs}")]
    Costs {
        /// `cost` or `total`.
        field: &'static str,
        /// Number of checks.
        checks: usize,
        /// Number of costs.
        costs: usize,
    },
    /// The reservation has ended.
    #[error(
        "the reservation has expired or was cancelled, and holds nothing any more: reserve again"
    )]
    Ended,
    /// The reservation was settled for another cost.
    #[error("the reservation was settled for {0} before: nothing was changed")]
    SettledFor(u64),
    /// The store did not answer, and this failure mode denied.
    #[error("the store does not answer, and fail_mode {0} denies")]
    DeniedBy(FailMode),
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CheckRateLimit {
    /// Takes the costs of all checks if every rule of every check admits them, in one store call.
    /// They return after the TTL, unless the reservation is settled before.
    ///
    /// A repeated request with the same request id gets the same reservation while it is pending
    /// and unused, and takes nothing.
    pub async fn reserve(
        &self,
        request: &ReservationRequest<'_>,
    ) -> Result<Reserved, ReservationError> {
        validate(request)?;
        let snapshot = self.catalog.load();
        let attributes: Vec<_> =
            request.checks.iter().map(|check| check.attributes_for(&snapshot)).collect();
        let mut plan = Plan::default();
        for (i, (check, own)) in request.checks.iter().zip(&attributes).enumerate() {
            plan.add(check, self.resolve(&snapshot, check, own))
                .map_err(|error| ReservationError::Check(i, error))?;
        }
        let id =
            ReservationId::new(request.request_id, request.ttl, plan.asked.len(), plan.limits())?;
        let verb = Verb::Reserve { id: id.lease(), lease: request.ttl };
        let outcomes = plan.shared.apply(&self.limiter, verb).await;
        let outcomes = outcomes.map_err(|error| plan.blame(error))?;
        let verdicts = plan.verdicts(self, &outcomes);
        tally(&verdicts);
        if !outcomes.iter().all(|outcome| outcome.allowed) {
            let is_settled = |outcome: &Outcome| changes::settled_for(outcome).is_some();
            return match request.request_id.filter(|_| outcomes.iter().any(is_settled)) {
                Some(used) => Err(ReservationError::RequestIdReused(used.to_owned())),
                None => Ok(Reserved { reservation: None, verdicts }),
            };
        }
        let pending = pending(&outcomes);
        let held = pending.iter().zip(plan.shared.units());
        if let Some(used) = request.request_id
            && held.clone().any(|(pending, units)| pending.is_some_and(|(held, _)| held != units))
        {
            return Err(ReservationError::RequestIdReused(used.to_owned()));
        }
        let made_at = outcomes.first().map_or_else(|| self.catalog.now(), |outcome| outcome.at);
        let ends = pending.iter().flatten().map(|(_, expires_at)| *expires_at).min();
        let expires_at = ends.unwrap_or(made_at + request.ttl);
        let replayed = request.request_id.is_some() && plan.shared.was_held(&outcomes, request.ttl);
        Ok(Reserved { reservation: Some(Reservation { id, expires_at, replayed }), verdicts })
    }
}

/// The limits of the checks of a request.
#[derive(Default)]
pub(super) struct Plan<'a> {
    shared: SharedBatch<'a>,
    /// Of each check: a rule that matches, and the enabled ones with their places.
    asked: Vec<Asked<'a>>,
}

type Asked<'a> = (Option<&'a Arc<CompiledRule>>, Stack<'a>, Vec<usize>);

impl<'a> Plan<'a> {
    pub(super) fn add(
        &mut self,
        check: &AnyQuestion<'_>,
        resolved: Result<Resolved<'a, 'a>, CheckError>,
    ) -> Result<(), CheckError> {
        let resolved = resolved?;
        let matched = resolved.matched;
        let (stack, places) = self.shared.add_all(resolved, check.cost());
        let cost = check.cost();
        let counted = stack.iter().filter(|rule| !rule.holds_places());
        let capacities = counted.map(|rule| rule.limit().capacity());
        if let Some(capacity) = capacities.min().filter(|capacity| *capacity < cost.get()) {
            return Err(InvalidCheck::CostAboveLimit { cost, capacity }.into());
        }
        self.asked.push((matched, stack, places));
        Ok(())
    }

    /// Describes the limits, for the reservation's id.
    pub(super) fn limits(&self) -> Vec<ReservedLimit> {
        let mut checks = vec![0_u16; self.shared.len()];
        for (i, (.., places)) in self.asked.iter().enumerate() {
            for place in places {
                checks[*place] |= 1 << i;
            }
        }
        let parts = self.shared.parts().zip(checks);
        parts
            .map(|((rule, space, subject), on)| ReservedLimit::new(rule, space, subject, on))
            .collect()
    }

    /// The check that an error is about: the last one that shares the limit.
    fn blame(&self, error: CheckError) -> ReservationError {
        match error {
            CheckError::Store(error) => ReservationError::Store(error),
            other => ReservationError::Check(self.asked.len().saturating_sub(1), other),
        }
    }

    /// Number of checks.
    pub(super) const fn len(&self) -> usize {
        self.asked.len()
    }

    /// Takes all units, and the places of concurrency limits under a lease.
    pub(super) async fn acquire(
        &self,
        limiter: &BatchLimiter,
        place: Place,
    ) -> Result<Vec<Outcome>, ReservationError> {
        self.shared.acquire(limiter, place).await.map_err(|error| self.blame(error))
    }

    pub(super) fn verdicts(
        &self,
        checks: &CheckRateLimit,
        outcomes: &[Outcome],
    ) -> Vec<Option<Verdict>> {
        let verdict = |(matched, stack, places): &Asked<'_>| {
            if stack.is_empty() {
                return matched.map(|rule| checks.exempt_by(rule));
            }
            let own: Vec<Outcome> = places.iter().map(|place| outcomes[*place]).collect();
            Some(Verdict::of(stack, &own))
        };
        self.asked.iter().map(verdict).collect()
    }
}

/// Counts decisions by rule. If one was denied, the others took nothing and count as neither.
pub(super) fn tally(verdicts: &[Option<Verdict>]) {
    let decided = || verdicts.iter().flatten();
    let all = decided().all(|verdict| verdict.decision.allowed);
    for verdict in decided().filter(|verdict| all || !verdict.decision.allowed) {
        verdict.rule.tally().count(all);
    }
}

pub(super) fn validate(request: &ReservationRequest<'_>) -> Result<(), ReservationError> {
    if !(1..=ReservationId::MAX_CHECKS).contains(&request.checks.len()) {
        return Err(ReservationError::Checks);
    }
    if !(ReservationId::MIN_TTL..=ReservationId::MAX_TTL).contains(&request.ttl) {
        return Err(ReservationError::Ttl);
    }
    Ok(())
}

/// Units and end of what each limit holds; `None` if it was decided without the store.
fn pending(outcomes: &[Outcome]) -> Vec<Option<(u64, Timestamp)>> {
    let pending = |outcome: &Outcome| match outcome.reservation() {
        Some(Standing::Pending { held, expires_at }) => Some((held, expires_at)),
        _ => None,
    };
    outcomes.iter().map(pending).collect()
}
