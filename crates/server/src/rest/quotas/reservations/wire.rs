//! Reservations as they are shown.

use headgate::Timestamp;
use headgate_quota::{QuotaId, QuotaUsage, Reservation, usecase::Reserved};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::time;

/// A new reservation, and usage after it.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaReserved)]
pub(in crate::rest) struct WireReserved {
    /// The reservation's id.
    #[schema(example = "qres_2026-02_01KJ3H9V5W8Z0XQ4M2N6P7R8ST")]
    id: String,
    /// Always true: a denied reservation is a 429.
    allowed: bool,
    /// Time at which the units come back, by the database's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    #[schema(inline)]
    status: WireStatus,
    #[serde(flatten)]
    usage: WireUnits,
}

/// A reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaReservation)]
pub(in crate::rest) struct WireReservation {
    /// The reservation's id.
    #[schema(example = "qres_2026-02_01KJ3H9V5W8Z0XQ4M2N6P7R8ST")]
    id: String,
    quota_id: String,
    #[schema(inline)]
    status: WireStatus,
    /// Units that were reserved at first.
    amount: u64,
    /// Units that it holds now.
    held: u64,
    /// Units that it has charged.
    settled: u64,
    /// Units that came back when it ended.
    returned: u64,
    /// Units that it was settled for, but that the limit did not allow to charge.
    owed: u64,
    /// Time at which what it holds comes back, or came back.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// An ended reservation, and usage after it.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaSettled)]
pub(in crate::rest) struct WireSettled {
    /// The reservation's id.
    id: String,
    #[schema(inline)]
    status: WireStatus,
    /// Units that it has charged in all.
    settled: u64,
    /// Units that came back.
    returned: u64,
    /// Units that the limit did not allow to charge.
    owed: u64,
    #[serde(flatten)]
    usage: WireUnits,
}

/// A used reservation, and usage after it.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaReservationUsed)]
pub(in crate::rest) struct WireUsed {
    /// The reservation's id.
    id: String,
    /// Units of this use that were charged.
    charged: u64,
    /// Units of this use that the limit did not allow to charge.
    owed: u64,
    /// Units that the reservation holds for the next use.
    held: u64,
    /// True if it holds nothing, and the limit allows no more: produce nothing more.
    stop: bool,
    /// Time at which what it holds comes back, by the database's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    #[serde(flatten)]
    usage: WireUnits,
}

/// Usage in the reservation's period.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaUnits)]
pub(in crate::rest) struct WireUnits {
    quota_id: String,
    used: u64,
    /// Units that pending reservations hold.
    reserved: u64,
    /// Units that are neither used nor reserved.
    remaining: u64,
    /// Used units in percent of the limit, with two decimals, rounded down.
    #[schema(example = 75.24)]
    usage_percent: f64,
    /// True if everything is used.
    exceeded: bool,
}

/// State of a reservation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::rest) enum WireStatus {
    Pending,
    Settled,
    Cancelled,
    Expired,
}

// === impl WireStatus ===

impl From<headgate_quota::ReservationStatus> for WireStatus {
    fn from(status: headgate_quota::ReservationStatus) -> Self {
        use headgate_quota::ReservationStatus as Status;
        match status {
            Status::Pending => Self::Pending,
            Status::Settled => Self::Settled,
            Status::Cancelled => Self::Cancelled,
            Status::Expired => Self::Expired,
        }
    }
}

// === impl WireReservation ===

impl WireReservation {
    pub(super) fn new(quota_id: &QuotaId, one: &Reservation) -> Self {
        Self {
            id: one.id.to_string(),
            quota_id: quota_id.to_string(),
            status: one.status.into(),
            amount: one.amount,
            held: one.held,
            settled: one.charged,
            returned: one.returned,
            owed: one.owed,
            expires_at: one.expires_at,
            created_at: one.created_at,
        }
    }
}

impl From<&Reserved> for WireUnits {
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

impl From<&Reserved> for WireReserved {
    fn from(done: &Reserved) -> Self {
        Self {
            id: done.reservation.id.to_string(),
            allowed: true,
            expires_at: done.reservation.expires_at,
            status: done.reservation.status.into(),
            usage: done.into(),
        }
    }
}

impl From<&Reserved> for WireSettled {
    fn from(done: &Reserved) -> Self {
        Self {
            id: done.reservation.id.to_string(),
            status: done.reservation.status.into(),
            settled: done.reservation.charged,
            returned: done.reservation.returned,
            owed: done.reservation.owed,
            usage: done.into(),
        }
    }
}

impl From<&Reserved> for WireUsed {
    fn from(done: &Reserved) -> Self {
        let last = done.reservation.last_use.as_ref();
        Self {
            id: done.reservation.id.to_string(),
            charged: last.map_or(0, |last| last.charged),
            owed: last.map_or(0, |last| last.owed),
            held: done.reservation.held,
            stop: last.is_some_and(|last| last.stop),
            expires_at: done.reservation.expires_at,
            usage: done.into(),
        }
    }
}
