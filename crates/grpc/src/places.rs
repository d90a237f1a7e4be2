//! Places of concurrency limits.

use std::time::Duration;

use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal};
use headgate_ratelimit::{
    Catalog, PlaceLeaseId, ReservationId,
    usecase::{ReservationError, ReservationRequest},
};

use super::{
    check,
    error::CallError,
    proto::{
        AcquireRequest, AcquireResponse, ReleaseLeaseRequest, ReleaseLeaseResponse,
        RenewLeaseRequest, RenewLeaseResponse,
    },
    reservations::read_checks,
    wire::{number, request_id, time},
};

pub(super) async fn acquire(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &AcquireRequest,
) -> Result<AcquireResponse, CallError> {
    let (asked, request_id) = read_checks(catalog, &wire.checks, request_id(&wire.request_id))?;
    let ttl = seconds(wire.lease_seconds).unwrap_or(ReservationId::DEFAULT_TTL);
    let request = ReservationRequest { checks: asked, ttl, request_id };
    let done = checks.acquire(&request).await.map_err(refused)?;
    let results = request.checks.iter().zip(&done.verdicts);
    let results = results.map(|(asked, verdict)| check::answer_any(asked, verdict.as_ref()));
    let mut denied = done.verdicts.iter().flatten().filter(|verdict| !verdict.decision.allowed);
    let lease = done.lease.as_ref();
    Ok(AcquireResponse {
        allowed: lease.is_some(),
        lease_id: lease.map_or_else(String::new, |lease| lease.id.to_string()),
        expires_at: lease.map(|lease| time(lease.expires_at)),
        lease_ms: lease.map_or(0, |lease| millis(lease.length)),
        results: results.collect(),
        retry_after_estimated: denied.any(|verdict| verdict.rule.holds_places()),
    })
}

pub(super) async fn renew(
    checks: &MeteredChecks,
    wire: &RenewLeaseRequest,
) -> Result<RenewLeaseResponse, CallError> {
    let id = parse_id(&wire.lease_id)?;
    let renewed = checks.renew_lease(&id, seconds(wire.lease_seconds)).await.map_err(refused)?;
    Ok(RenewLeaseResponse {
        expires_at: Some(time(renewed.expires_at)),
        lease_ms: millis(renewed.length),
        degraded: renewed.degraded.map_or("", headgate::Degraded::name).to_owned(),
    })
}

pub(super) async fn release(
    checks: &MeteredChecks,
    wire: &ReleaseLeaseRequest,
) -> Result<ReleaseLeaseResponse, CallError> {
    let released = checks.release_lease(&parse_id(&wire.lease_id)?).await.map_err(refused)?;
    Ok(ReleaseLeaseResponse { released })
}

/// `None` for 0.
fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

fn millis(length: Duration) -> i64 {
    number(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

fn parse_id(text: &str) -> Result<PlaceLeaseId, CallError> {
    if text.is_empty() {
        return Err(CallError::field("lease_id", "lease_id is required"));
    }
    text.parse().map_err(|_| ReservationRefusal::no_such_lease(text).into())
}

/// The error of a lease, whose fields have other names.
fn refused(error: ReservationError) -> CallError {
    match error {
        ReservationError::Ended => ReservationRefusal::LeaseEnded.into(),
        ReservationError::Ttl => {
            let message = error.to_string().replace("ttl_seconds", "lease_seconds");
            CallError::field("lease_seconds", message)
        }
        other => other.into(),
    }
}
