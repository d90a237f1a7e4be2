//! Converts reservations to and from messages.

use headgate_api::quotas::{QuotaRefusal, QuotaServices};
use headgate_quota::{
    QuotaId, QuotaUsage, Reservation, ReservationId,
    usecase::{ReservationRequest, Reserved},
};

use super::messages;
use crate::{error::CallError, proto::quota as proto, wire::time};

/// Parses the ids of a policy and of its reservation; an invalid id is an unknown one.
pub(super) fn ids(quota: &str, reservation: &str) -> Result<(QuotaId, ReservationId), CallError> {
    let quota = messages::id("quota_id", quota)?;
    if reservation.is_empty() {
        let message = "reservation_id is required".to_owned();
        return Err(CallError::field("reservation_id", message));
    }
    let shown = || reservation.chars().take(ReservationId::MAX_BYTES).collect();
    let parsed = reservation.parse();
    Ok((quota, parsed.map_err(|_| CallError::from(QuotaRefusal::NoReservation(shown())))?))
}

/// Returns the requested reservation.
pub(super) fn request(wire: &proto::ReserveQuotaRequest) -> ReservationRequest<'_> {
    let ttl_seconds = match wire.ttl_seconds {
        0 => Reservation::DEFAULT_TTL.as_secs(),
        seconds => seconds,
    };
    ReservationRequest { amount: wire.amount, ttl_seconds, request_id: wire.request_id.as_deref() }
}

/// Charges what was produced while a reservation runs.
pub(super) async fn spend(
    quotas: &QuotaServices,
    wire: &proto::UseQuotaReservationRequest,
) -> Result<proto::UseQuotaReservationResponse, CallError> {
    let (id, one) = ids(&wire.quota_id, &wire.reservation_id)?;
    let request_id = wire.request_id.as_deref();
    let done = quotas.reservations().spend(&id, &one, wire.amount, request_id).await;
    Ok((&done.map_err(CallError::from)?).into())
}

/// Converts a reservation.
pub(super) fn message(quota_id: &QuotaId, one: &Reservation) -> proto::QuotaReservation {
    proto::QuotaReservation {
        id: one.id.to_string(),
        quota_id: quota_id.to_string(),
        status: one.status.name().to_owned(),
        amount: one.amount,
        held: one.held,
        settled: one.charged,
        returned: one.returned,
        owed: one.owed,
        expires_at: Some(time(one.expires_at)),
        created_at: Some(time(one.created_at)),
    }
}

impl From<&Reserved> for proto::QuotaReservation {
    fn from(done: &Reserved) -> Self {
        message(&done.quota_id, &done.reservation)
    }
}

impl From<&Reserved> for proto::QuotaUnits {
    fn from(done: &Reserved) -> Self {
        let units = done.units;
        Self {
            quota_id: done.quota_id.to_string(),
            used: units.used,
            reserved: units.reserved,
            remaining: units.remaining(),
            usage_percent: QuotaUsage::percent(units.used, units.limit),
            exceeded: QuotaUsage::is_exceeded(units.used, units.limit),
        }
    }
}

impl From<&Reserved> for proto::ReserveQuotaResponse {
    fn from(done: &Reserved) -> Self {
        let (reservation, usage) = (Some(done.into()), Some(done.into()));
        Self { reservation, allowed: true, replayed: done.replayed, usage }
    }
}

impl From<&Reserved> for proto::UseQuotaReservationResponse {
    fn from(done: &Reserved) -> Self {
        let last = done.reservation.last_use.as_ref();
        Self {
            reservation: Some(done.into()),
            charged: last.map_or(0, |last| last.charged),
            owed: last.map_or(0, |last| last.owed),
            stop: last.is_some_and(|last| last.stop),
            replayed: done.replayed,
            usage: Some(done.into()),
        }
    }
}

impl From<&Reserved> for proto::SettleQuotaReservationResponse {
    fn from(done: &Reserved) -> Self {
        let (reservation, usage) = (Some(done.into()), Some(done.into()));
        Self { reservation, replayed: done.replayed, usage }
    }
}

impl From<&Reserved> for proto::CancelQuotaReservationResponse {
    fn from(done: &Reserved) -> Self {
        let (reservation, usage) = (Some(done.into()), Some(done.into()));
        Self { reservation, replayed: done.replayed, usage }
    }
}
