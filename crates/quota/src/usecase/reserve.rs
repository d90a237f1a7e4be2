//! Reserves units of a quota, and settles them later.

use std::{sync::Arc, time::Duration};

use headgate::Cost;
use headgate_admin::FieldError;
use thiserror::Error;

use super::increment::{IncrementUsage, check_range, check_request_id, exceeds_limit};
use crate::{
    ActivePolicy, PeriodSpan, QuotaId, QuotaUsage, Quotas, RepositoryError, Reservation,
    ReservationAction, ReservationChange, ReservationId, ReservationOutcome, ReservationResult,
    ReservationStatus, Reserve, SettledFor, Units,
    committer::{NotCommitted, Queue},
};

/// Reserves units, and uses, settles or cancels reservations. What a call has done is durable when
/// it returns.
#[derive(Clone, Debug)]
pub struct ReserveUsage {
    quotas: Quotas,
    queue: Queue,
}

/// A request for units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservationRequest<'a> {
    /// Units.
    pub amount: u64,
    /// Time to live in seconds.
    pub ttl_seconds: u64,
    /// Idempotency key.
    pub request_id: Option<&'a str>,
}

/// A reservation after a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// The reservation.
    pub reservation: Reservation,
    /// Id of the policy.
    pub quota_id: QuotaId,
    /// Units of its period.
    pub units: Units,
    /// `true` if it was done before.
    pub replayed: bool,
}

/// An error of a call.
#[derive(Clone, Debug, Error)]
pub enum ReservationError {
    /// A field is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Too few units are left: nothing was reserved.
    #[error("quota exceeded")]
    Denied(Box<QuotaUsage>),
    /// Another amount was reserved or used under the same request id.
    #[error("request_id {0} was used with another amount in this period")]
    Conflict(String),
    /// There is no such reservation of this policy.
    #[error("quota reservation not found: {0}")]
    Unknown(String),
    /// The TTL is over.
    #[error("quota reservation {} expired; its units came back", .0.id)]
    Expired(Box<Reservation>),
    /// The reservation was settled for another amount, or has ended in another way.
    #[error("quota reservation {} was {} before", .0.id, .0.status)]
    Ended(Box<Reservation>),
    /// The queue is full.
    #[error("too many operations are waiting; try again")]
    Overloaded,
    /// The policy does not exist, or the ledger failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

// === impl ReserveUsage ===

impl ReserveUsage {
    /// Creates the use case on the queue of `increments`.
    pub fn new(increments: &IncrementUsage) -> Self {
        let (quotas, queue) = increments.parts();
        Self { quotas: quotas.clone(), queue: queue.clone() }
    }

    /// Reserves units if that many are left in the current period. A request id that reserved
    /// before in this period returns the same reservation, as it is now.
    pub async fn reserve(
        &self,
        id: &QuotaId,
        request: ReservationRequest<'_>,
    ) -> Result<Reserved, ReservationError> {
        let policy = self.quotas.find(id).await?;
        validate(request).map_err(ReservationError::Invalid)?;
        let first = self.attempt(&policy, request).await;
        // The commit has measured the ledger's clock: retry with the period by that.
        if let Err(ReservationError::Repository(RepositoryError::OutOfPeriod(_))) = first {
            return self.attempt(&policy, request).await;
        }
        first
    }

    /// Charges `amount` while the reservation stays pending, and renews its TTL. The reservation is
    /// extended within the limit, so that as much again can be used; if nothing is left for that,
    /// [`LastUse::stop`](crate::LastUse::stop) is `true`. An amount of 0 only renews.
    pub async fn spend(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Reserved, ReservationError> {
        let errors = [check_used(amount).err(), request_id.and_then(check_request_id)];
        let errors: Vec<FieldError> = errors.into_iter().flatten().collect();
        if !errors.is_empty() {
            return Err(ReservationError::Invalid(errors));
        }
        let request_id = request_id.map(str::to_owned);
        self.change(id, reservation, ReservationAction::Use { amount, request_id }).await
    }

    /// Charges `amount` in all, and ends the reservation. What is left of it comes back; what is
    /// missing is taken within the limit, or past it with `overdraft`.
    pub async fn settle(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        settled_for: SettledFor,
    ) -> Result<Reserved, ReservationError> {
        check_used(settled_for.amount).map_err(|error| ReservationError::Invalid(vec![error]))?;
        self.change(id, reservation, ReservationAction::Settle(settled_for)).await
    }

    /// Ends the reservation. What it holds comes back; what was used stays charged.
    pub async fn cancel(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
    ) -> Result<Reserved, ReservationError> {
        self.change(id, reservation, ReservationAction::Cancel).await
    }

    /// Returns a reservation, as the ledger has it.
    pub async fn get(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
    ) -> Result<Reservation, ReservationError> {
        self.quotas.find(id).await?;
        let found = self.quotas.ledger.reservation(id, reservation).await?;
        found.ok_or_else(|| ReservationError::Unknown(reservation.to_string()))
    }

    async fn attempt(
        &self,
        policy: &Arc<ActivePolicy>,
        request: ReservationRequest<'_>,
    ) -> Result<Reserved, ReservationError> {
        let now = self.quotas.now();
        let span = policy.span(now);
        let reserve = Reserve {
            policy: policy.policy().id.clone(),
            span: Arc::clone(&span),
            id: ReservationId::new(&span.name, now),
            amount: request.amount,
            ttl: Duration::from_secs(request.ttl_seconds),
            request_id: request.request_id.map(str::to_owned),
            at: now,
        };
        let result = self.queue.commit(Arc::clone(policy), reserve).await?.reservation();
        let result = result.ok_or_else(|| RepositoryError::mismatched("a reservation"))?;
        match result.outcome {
            ReservationOutcome::Denied => {
                let span = PeriodSpan::clone(&span);
                let usage = QuotaUsage::new(policy.policy(), span, result.units, now);
                Err(ReservationError::Denied(Box::new(usage)))
            }
            ReservationOutcome::OutOfPeriod => {
                Err(RepositoryError::OutOfPeriod(span.name.clone()).into())
            }
            _ => reserved(&policy.policy().id, None, request.request_id, result),
        }
    }

    async fn change(
        &self,
        id: &QuotaId,
        reservation: &ReservationId,
        action: ReservationAction,
    ) -> Result<Reserved, ReservationError> {
        let policy = self.quotas.find(id).await?;
        let request_id = match &action {
            ReservationAction::Use { request_id, .. } => request_id.clone(),
            _ => None,
        };
        let (policy_id, at) = (id.clone(), self.quotas.now());
        let change = ReservationChange { policy: policy_id, id: reservation.clone(), action, at };
        let result = self.queue.commit(policy, change).await?.reservation();
        let result = result.ok_or_else(|| RepositoryError::mismatched("a reservation"))?;
        reserved(id, Some(reservation), request_id.as_deref(), result)
    }
}

/// Converts a result of the ledger.
fn reserved(
    policy: &QuotaId,
    id: Option<&ReservationId>,
    request_id: Option<&str>,
    result: ReservationResult,
) -> Result<Reserved, ReservationError> {
    let ReservationResult { outcome, units, reservation } = result;
    let quota_id = policy.clone();
    match (outcome, reservation) {
        (ReservationOutcome::Done | ReservationOutcome::Replayed, Some(reservation)) => {
            let replayed = outcome == ReservationOutcome::Replayed;
            Ok(Reserved { reservation: *reservation, quota_id, units, replayed })
        }
        (ReservationOutcome::Ended, Some(reservation)) => Err(match reservation.status {
            ReservationStatus::Expired => ReservationError::Expired(reservation),
            _ => ReservationError::Ended(reservation),
        }),
        (ReservationOutcome::ExceedsLimit, _) => {
            Err(ReservationError::Invalid(vec![exceeds_limit(units.limit)]))
        }
        (ReservationOutcome::Conflict, _) => {
            Err(ReservationError::Conflict(request_id.unwrap_or_default().to_owned()))
        }
        (ReservationOutcome::NotFound, _) => Err(RepositoryError::NotFound(quota_id).into()),
        (ReservationOutcome::Unknown, _) => {
            Err(ReservationError::Unknown(id.map(ToString::to_string).unwrap_or_default()))
        }
        _ => Err(RepositoryError::mismatched("a reservation").into()),
    }
}

/// Validates the fields of a request. The ledger decides whether the amount exceeds the limit.
fn validate(request: ReservationRequest<'_>) -> Result<(), Vec<FieldError>> {
    let errors = [
        check_range(request.amount).err(),
        check_ttl(request.ttl_seconds).err(),
        request.request_id.and_then(check_request_id),
    ];
    let errors: Vec<FieldError> = errors.into_iter().flatten().collect();
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn check_ttl(seconds: u64) -> Result<(), FieldError> {
    let (min, max) = (Reservation::MIN_TTL.as_secs(), Reservation::MAX_TTL.as_secs());
    if (min..=max).contains(&seconds) {
        return Ok(());
    }
    let message = format!("ttl_seconds must be between {min} and {max}");
    Err(FieldError { field: "ttl_seconds", reason: "out_of_range", message })
}

/// Checks an amount that was used already: it may be 0, and more than the limit.
fn check_used(amount: u64) -> Result<(), FieldError> {
    if amount <= Cost::MAX {
        return Ok(());
    }
    let message = format!("amount must be at most {}", Cost::MAX);
    Err(FieldError { field: "amount", reason: "too_large", message })
}

// === impl ReservationError ===

impl From<NotCommitted> for ReservationError {
    fn from(error: NotCommitted) -> Self {
        match error {
            NotCommitted::Full => Self::Overloaded,
            NotCommitted::Failed(error) => Self::Repository(error),
        }
    }
}
