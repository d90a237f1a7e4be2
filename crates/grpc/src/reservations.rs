//! Reservations and refunds of rate limits.

mod errors;

use std::time::Duration;

use headgate::Decision;
use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal};
use headgate_ratelimit::{
    Catalog, ReservationId,
    usecase::{
        AnyQuestion, ReservationRequest,
        check::reservations::{Charge, CheckSettlement, Costs},
    },
};

use super::{
    check::{self, any_question},
    error::{CallError, Violation},
    proto::{
        CancelReservationRequest, CancelReservationResponse, CheckRateLimitRequest,
        GetReservationRequest, GetReservationResponse, RefundCheckRequest, RefundCheckResponse,
        ReserveRequest, ReserveResponse, ReservedCheck, SettleReservationRequest,
        SettleReservationResponse, SettledCheck, UseReservationRequest, UseReservationResponse,
    },
    wire::{number, request_id, time},
};

pub(super) async fn reserve(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &ReserveRequest,
) -> Result<ReserveResponse, CallError> {
    let request = request(catalog, wire)?;
    let done = checks.reserve(&request).await?;
    let results = request.checks.iter().zip(&done.verdicts);
    let results = results.map(|(asked, verdict)| check::answer_any(asked, verdict.as_ref()));
    let made = done.reservation.as_ref();
    Ok(ReserveResponse {
        allowed: made.is_some(),
        id: made.map_or_else(String::new, |made| made.id.to_string()),
        expires_at: made.map(|made| time(made.expires_at)),
        results: results.collect(),
        replayed: made.is_some_and(|made| made.replayed),
    })
}

pub(super) async fn spend(
    checks: &MeteredChecks,
    wire: &UseReservationRequest,
) -> Result<UseReservationResponse, CallError> {
    let (id, charge) = (parse_id(&wire.id)?, charge(wire)?);
    let used = checks.use_reservation(&id, &charge).await?;
    Ok(UseReservationResponse {
        held: used.held,
        stop: used.held == Some(0),
        expires_at: Some(time(used.expires_at)),
    })
}

pub(super) async fn settle(
    checks: &MeteredChecks,
    wire: &SettleReservationRequest,
) -> Result<SettleReservationResponse, CallError> {
    let (id, costs) = (parse_id(&wire.id)?, costs("costs", &wire.costs)?);
    let settled = checks.settle_reservation(&id, &costs, wire.overdraft).await?;
    let most = CheckSettlement::most_owing(&settled);
    Ok(SettleReservationResponse {
        settled: most.map_or(0, |it| it.settled),
        returned: most.map_or(0, |it| it.returned),
        owed: most.map_or(0, |it| it.owed),
        results: settled.iter().map(SettledCheck::from).collect(),
    })
}

pub(super) async fn cancel(
    checks: &MeteredChecks,
    wire: &CancelReservationRequest,
) -> Result<CancelReservationResponse, CallError> {
    let id = parse_id(&wire.id)?;
    checks.cancel_reservation(&id).await?;
    Ok(CancelReservationResponse { id: id.to_string() })
}

pub(super) async fn get(
    checks: &MeteredChecks,
    wire: &GetReservationRequest,
) -> Result<GetReservationResponse, CallError> {
    let state = checks.reservation(&parse_id(&wire.id)?).await?;
    let results = state.checks.iter().map(|check| ReservedCheck {
        held: check.held,
        settled: check.settled,
        returned: check.returned,
        owed: check.owed,
    });
    Ok(GetReservationResponse {
        status: state.status.name().to_owned(),
        expires_at: state.expires_at.map(time),
        results: results.collect(),
    })
}

pub(super) async fn refund(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &RefundCheckRequest,
) -> Result<RefundCheckResponse, CallError> {
    let missing = |field: &'static str| CallError::field(field, format!("{field} is required"));
    let check = wire.check.as_ref().ok_or_else(|| missing("check"))?;
    let named = request_id(&check.request_id).map_err(|wrong| CallError::Invalid(vec![wrong]))?;
    let named = named.ok_or_else(|| missing("request_id"))?;
    let question = any_question(catalog, check)?;
    let done = checks.refund(&question, named).await?;
    let decision = done.decision.as_ref();
    Ok(RefundCheckResponse {
        cost: cost(&question),
        replayed: done.replayed,
        limit: decision.map(|it| number(it.limit)),
        remaining: decision.map(|it| number(it.remaining)),
        reset_at: decision.map(|it| number(it.reset_at_secs())),
    })
}

/// Returns the request, or everything that is invalid in it.
fn request<'a>(
    catalog: &Catalog,
    wire: &'a ReserveRequest,
) -> Result<ReservationRequest<'a>, CallError> {
    let ttl = match wire.ttl_seconds {
        0 => ReservationId::DEFAULT_TTL,
        seconds => Duration::from_secs(seconds),
    };
    let (checks, request_id) = read_checks(catalog, &wire.checks, request_id(&wire.request_id))?;
    Ok(ReservationRequest { checks, ttl, request_id })
}

/// Returns the checks and the idempotency key of a request, or everything that is invalid in them.
pub(super) fn read_checks<'a>(
    catalog: &Catalog,
    wire: &'a [CheckRateLimitRequest],
    named: Result<Option<&'a str>, Violation>,
) -> Result<(Vec<AnyQuestion<'a>>, Option<&'a str>), CallError> {
    if !(1..=ReservationId::MAX_CHECKS).contains(&wire.len()) {
        let message = format!("checks must have 1 to {} items", ReservationId::MAX_CHECKS);
        return Err(CallError::field("checks", message));
    }
    let (mut checks, mut wrong) = (Vec::new(), Vec::new());
    for check in wire {
        wrong.extend(options(check));
        match any_question(catalog, check) {
            Ok(question) => checks.push(question),
            Err(CallError::Invalid(violations)) => wrong.extend(violations),
            Err(other) => return Err(other),
        }
    }
    match named {
        Ok(request_id) if wrong.is_empty() => Ok((checks, request_id)),
        named => Err(CallError::Invalid(wrong.into_iter().chain(named.err()).collect())),
    }
}

/// Options of single checks.
fn options(check: &CheckRateLimitRequest) -> Option<Violation> {
    let is_set = check.dry_run || check.limits || !check.request_id.is_empty();
    let message = "dry_run, limits and request_id are not for the checks of a reservation";
    is_set.then(|| Violation::new("checks", message))
}

fn parse_id(text: &str) -> Result<ReservationId, CallError> {
    if text.is_empty() {
        return Err(CallError::field("id", "id is required"));
    }
    text.parse().map_err(|_| ReservationRefusal::not_found(text).into())
}

/// What a use charges: costs, or else totals.
fn charge(wire: &UseReservationRequest) -> Result<Charge, CallError> {
    match (&wire.costs[..], &wire.totals[..]) {
        ([], []) => Err(CallError::field("costs", "costs or totals is required")),
        (by_use, []) => costs("costs", by_use).map(Charge::Cost),
        ([], in_all) => costs("totals", in_all).map(Charge::Total),
        _ => Err(CallError::field(
            "totals",
            "totals cannot be combined with costs: send one of them",
        )),
    }
}

fn costs(field: &'static str, units: &[u64]) -> Result<Costs, CallError> {
    if let Some(large) = units.iter().find(|units| **units > headgate::Cost::MAX) {
        let name = field.trim_end_matches('s');
        let message = format!("{name} must be at most {}, got {large}", headgate::Cost::MAX);
        return Err(CallError::field(field, message));
    }
    match units {
        [] => Err(CallError::field(field, format!("{field} is required"))),
        [one] => Ok(Costs::Each(*one)),
        several => Ok(Costs::PerCheck(several.to_vec())),
    }
}

const fn cost(question: &AnyQuestion<'_>) -> u64 {
    match question {
        AnyQuestion::Subject(question) => question.cost.get(),
        AnyQuestion::Attributes(question) => question.cost.get(),
    }
}

impl From<&CheckSettlement> for SettledCheck {
    fn from(check: &CheckSettlement) -> Self {
        let decision = check.decision.as_ref();
        Self {
            settled: check.settled,
            returned: check.returned,
            owed: check.owed,
            debt: check.debt,
            limit: decision.map(|it| number(it.limit)),
            remaining: decision.map(|it| number(it.remaining)),
            reset_at: decision.map(|it: &Decision| number(it.reset_at_secs())),
        }
    }
}
