//! Reservations as they are shown.

use headgate::Timestamp;
use headgate_ratelimit::{
    ReservationId,
    usecase::{
        Verdict,
        check::reservations::{
            CheckSettlement, ReservationState, ReservationUse, Reserved, Status,
        },
    },
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::{
    check::{WireDetailed, rule_name},
    time,
};

/// A new reservation, or a denial.
#[derive(Serialize, ToSchema)]
#[schema(as = Reserved)]
pub(in crate::rest) struct WireReserved<'a> {
    /// The reservation's id; left out of a denial, as the next two. It contains the identifiers, in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "rres_wX0b…")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    status: Option<WireStatus>,
    /// Time at which the units return, by the store's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    expires_at: Option<String>,
    /// True if all are admitted; otherwise nothing was taken.
    allowed: bool,
    /// The decision of each check, in their order.
    results: Vec<WireDetailed<'a>>,
}

/// A reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = Reservation)]
pub(in crate::rest) struct WireReservation {
    id: String,
    #[schema(inline)]
    status: WireStatus,
    /// Time at which what it holds returns, by the store's clock; left out if it is not pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime, nullable = false)]
    expires_at: Option<String>,
    /// Each check, in their order.
    #[schema(inline)]
    results: Vec<WireStanding>,
}

/// One check of a reservation.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct WireStanding {
    /// Units that it holds.
    held: u64,
    /// Units that were charged when it was settled.
    settled: u64,
    /// Units that returned when it was settled.
    returned: u64,
    /// Units for which it was settled, and that were not available.
    owed: u64,
}

/// A settled reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = Settled)]
pub(in crate::rest) struct WireSettled {
    id: String,
    #[schema(inline)]
    status: WireStatus,
    /// Units that were charged, in all. This and the next two are of the check that owes most, or of the first one.
    settled: u64,
    /// Units that were reserved, and returned.
    returned: u64,
    /// Units that were not available, and were not charged.
    owed: u64,
    /// Each check, in their order.
    #[schema(inline)]
    results: Vec<WireCheckSettled>,
}

/// One check of a settled reservation.
#[derive(Serialize, ToSchema)]
pub(in crate::rest) struct WireCheckSettled {
    settled: u64,
    returned: u64,
    owed: u64,
    /// Units that the subject has taken beyond its limit, and that return first.
    debt: u64,
    /// Maximum number of units at once; left out if no rule matches, as the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit: Option<u64>,
    /// Remaining units.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining: Option<u64>,
    /// Unix time in seconds at which the whole limit is available again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reset_at: Option<u64>,
}

/// A used reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = ReservationUsed)]
pub(in crate::rest) struct WireUsed {
    id: String,
    /// Units that may be spent before the next use; left out if no rule limits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held: Option<u64>,
    /// True if it holds nothing, and the limit allows no more: spend nothing more.
    stop: bool,
    /// Time at which what it holds returns, by the store's clock.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

/// A cancelled reservation.
#[derive(Serialize, ToSchema)]
#[schema(as = Cancelled)]
pub(in crate::rest) struct WireCancelled {
    id: String,
    #[schema(inline)]
    status: WireStatus,
}

/// State of a reservation. One that has ended was cancelled or has expired, or its settlement is forgotten.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::rest) enum WireStatus {
    Pending,
    Settled,
    Cancelled,
    Ended,
}

/// The names of the rules that decided.
pub(in crate::rest) fn names(verdicts: &[Option<Verdict>]) -> Vec<Option<String>> {
    let name = |verdict: &Option<Verdict>| verdict.as_ref().map(|it| rule_name(&it.rule));
    verdicts.iter().map(name).collect()
}

impl<'a> WireReserved<'a> {
    pub(super) fn new(done: &'a Reserved, names: &'a [Option<String>]) -> Self {
        let results = done.verdicts.iter().zip(names);
        let reservation = done.reservation.as_ref();
        Self {
            id: reservation.map(|made| made.id.as_str()),
            status: reservation.map(|_| WireStatus::Pending),
            expires_at: reservation.map(|made| time::text(made.expires_at)),
            allowed: reservation.is_some(),
            results: results
                .map(|(verdict, name)| {
                    WireDetailed::of(verdict.as_ref(), name.as_deref().unwrap_or_default(), false)
                })
                .collect(),
        }
    }
}

impl WireReservation {
    pub(super) fn new(id: &ReservationId, state: &ReservationState) -> Self {
        let results = state.checks.iter().map(|check| WireStanding {
            held: check.held,
            settled: check.settled,
            returned: check.returned,
            owed: check.owed,
        });
        Self {
            id: id.to_string(),
            status: state.status.into(),
            expires_at: state.expires_at.map(time::text),
            results: results.collect(),
        }
    }
}

impl WireSettled {
    pub(super) fn new(id: &ReservationId, checks: &[CheckSettlement]) -> Self {
        let most = CheckSettlement::most_owing(checks);
        Self {
            id: id.to_string(),
            status: WireStatus::Settled,
            settled: most.map_or(0, |it| it.settled),
            returned: most.map_or(0, |it| it.returned),
            owed: most.map_or(0, |it| it.owed),
            results: checks.iter().map(WireCheckSettled::from).collect(),
        }
    }
}

impl From<&CheckSettlement> for WireCheckSettled {
    fn from(check: &CheckSettlement) -> Self {
        Self {
            settled: check.settled,
            returned: check.returned,
            owed: check.owed,
            debt: check.debt,
            limit: check.decision.map(|decision| decision.limit),
            remaining: check.decision.map(|decision| decision.remaining),
            reset_at: check.decision.map(|decision| decision.reset_at_secs()),
        }
    }
}

impl WireUsed {
    pub(super) fn new(id: &ReservationId, used: &ReservationUse) -> Self {
        Self {
            id: id.to_string(),
            held: used.held,
            stop: used.held == Some(0),
            expires_at: used.expires_at,
        }
    }
}

impl WireCancelled {
    pub(super) fn new(id: &ReservationId) -> Self {
        Self { id: id.to_string(), status: WireStatus::Cancelled }
    }
}

impl From<Status> for WireStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::Settled => Self::Settled,
            Status::Ended => Self::Ended,
        }
    }
}
