//! `/api/v1/ratelimit/reservations`: units that are taken before their use is known.

pub(super) mod changes;
mod costs;
mod wire;

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER},
    response::Response,
};
use headgate_api::rate_limits::{MeteredChecks, ReservationRefusal};
use headgate_ratelimit::{
    ReservationId,
    usecase::{AnyQuestion, ReservationRequest, check::reservations::Reserved},
};
use serde::Deserialize;
use utoipa::ToSchema;

pub(super) use self::wire::names;
use self::wire::{WireReservation, WireReserved};
use super::{
    check::{WireQuestion, request_id},
    error::{ApiError, Detail},
    field::Field,
    idempotency::mark,
    json,
    json_body::{JsonBody, WireObject},
    path::PathParam,
    schemas::{Failing, NoSuchLimitReservation, RequestIdUsed, WithBody},
};

/// The path.
pub(super) const PATH: &str = "/api/v1/ratelimit/reservations";

/// The path of one reservation.
pub(super) const ONE: &str = "/api/v1/ratelimit/reservations/{id}";

/// Units to reserve.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Reserve)]
pub(in crate::rest) struct WireReserve<'a> {
    /// If one is denied, nothing is taken for any. `dry_run`, `limits` and `request_id` are not
    /// for single checks here.
    #[serde(borrow, default)]
    #[schema(required = true, min_items = 1, max_items = 16)]
    checks: Vec<WireQuestion<'a>>,
    /// Seconds after which the units return, unless the reservation is used or ended before; default 30.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 3600, example = 30)]
    ttl_seconds: Field<'a>,
    /// Idempotency key: a retry gets the same reservation. Default: the `Idempotency-Key` header.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// Takes the costs of several checks, all or nothing, until they are settled or the TTL is over.
///
/// A denial takes nothing. A retry with the same `request_id` gets the same reservation with `Idempotent-Replayed: true`,
/// while it is pending and unused.
#[utoipa::path(
    post,
    path = PATH,
    tag = "reservations",
    operation_id = "reserve",
    params(("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none")),
    request_body = WireReserve<'_>,
    responses(
        (status = 201, description = "The units are reserved", body = WireReserved<'_>),
        (
            status = 200,
            description = "A denial: nothing is reserved",
            body = WireReserved<'_>,
            headers(("Retry-After" = u64, description = "Seconds to wait before a retry")),
        ),
        RequestIdUsed, WithBody, Failing,
    ),
)]
pub(super) async fn reserve(
    State(checks): State<Arc<MeteredChecks>>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    reserve_by(&checks, &headers, &body).await
}

/// Reserves what a body says.
pub(super) async fn reserve_by(
    checks: &MeteredChecks,
    headers: &HeaderMap,
    body: &JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireReserve<'_> = body.parse()?;
    let named = wire.request_id(headers);
    let request = wire.validate(named).map_err(ApiError::Invalid)?;
    let done = checks.reserve(&request).await?;
    Ok(respond(&done))
}

fn respond(done: &Reserved) -> Response {
    let names = wire::names(&done.verdicts);
    let mut response = json::respond(&WireReserved::new(done, &names));
    if let Some(reservation) = &done.reservation {
        *response.status_mut() = StatusCode::CREATED;
        mark(&mut response, reservation.replayed);
    } else {
        let waits = done.verdicts.iter().flatten();
        let wait = waits.map(|verdict| verdict.decision.retry_after_secs()).max();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.unwrap_or(1)));
    }
    response
}

/// Shows a reservation.
#[utoipa::path(
    get,
    path = ONE,
    tag = "reservations",
    operation_id = "get_reservation",
    params(("id" = String, Path, description = "The reservation's id")),
    responses((status = 200, description = "The reservation", body = WireReservation), NoSuchLimitReservation, Failing),
)]
pub(super) async fn get(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    let id = parse_id(&id)?;
    let state = checks.reservation(&id).await?;
    Ok(json::respond(&WireReservation::new(&id, &state)))
}

impl<'a> WireObject<'a> for WireReserve<'a> {
    fn problems(self) -> Vec<Detail> {
        let named = self.request_id(&HeaderMap::new()).map(|_| None);
        self.validate(named).err().unwrap_or_default()
    }
}

impl WireReserve<'_> {
    fn request_id<'s>(&'s self, headers: &'s HeaderMap) -> Result<Option<&'s str>, Detail> {
        request_id(&self.request_id, headers)
    }

    /// Returns the request, or all that is invalid.
    fn validate<'s>(
        &'s self,
        request_id: Result<Option<&'s str>, Detail>,
    ) -> Result<ReservationRequest<'s>, Vec<Detail>> {
        let (checks, mut wrong) = read_checks(&self.checks);
        let ttl = ttl(&self.ttl_seconds).unwrap_or_else(|detail| {
            wrong.push(detail);
            ReservationId::DEFAULT_TTL
        });
        let request_id = request_id.unwrap_or_else(|detail| {
            wrong.push(detail);
            None
        });
        let request = ReservationRequest { checks, ttl, request_id };
        if wrong.is_empty() { Ok(request) } else { Err(wrong) }
    }
}

/// Reads the checks of a request, and what is wrong with them.
pub(super) fn read_checks<'s>(wire: &'s [WireQuestion<'_>]) -> (Vec<AnyQuestion<'s>>, Vec<Detail>) {
    let mut wrong = Vec::new();
    if !(1..=ReservationId::MAX_CHECKS).contains(&wire.len()) {
        let message = format!("checks must have 1 to {} items", ReservationId::MAX_CHECKS);
        wrong.push(Detail::new("checks", "length", message));
    }
    let mut checks = Vec::with_capacity(wire.len());
    for (i, check) in wire.iter().take(ReservationId::MAX_CHECKS).enumerate() {
        match single(check) {
            Ok(check) => checks.push(check),
            Err(details) => {
                wrong.extend(details.into_iter().map(|detail| detail.within("checks", i)));
            }
        }
    }
    (checks, wrong)
}

/// Reads a check, which has no options of its own.
fn single<'s>(check: &'s WireQuestion<'_>) -> Result<AnyQuestion<'s>, Vec<Detail>> {
    let mut wrong = check.options();
    match check.any() {
        Ok((question, _)) if wrong.is_empty() => Ok(question),
        Ok(_) => Err(wrong),
        Err(mut details) => {
            wrong.append(&mut details);
            Err(wrong)
        }
    }
}

fn ttl(field: &Field<'_>) -> Result<Duration, Detail> {
    match field {
        Field::Missing | Field::Null => Ok(ReservationId::DEFAULT_TTL),
        given => duration("ttl_seconds", given),
    }
}

/// Reads a duration in seconds from the field `name`.
pub(super) fn duration(name: &'static str, field: &Field<'_>) -> Result<Duration, Detail> {
    let seconds = match field {
        Field::Number(seconds) => u64::try_from(*seconds).unwrap_or_default(),
        other => {
            let message = format!("{name} must be a whole number, got {}", other.kind());
            return Err(Detail::new(name, "wrong_type", message));
        }
    };
    let (min, max) = (ReservationId::MIN_TTL.as_secs(), ReservationId::MAX_TTL.as_secs());
    if (min..=max).contains(&seconds) {
        return Ok(Duration::from_secs(seconds));
    }
    let message = format!("{name} must be between {min} and {max}");
    Err(Detail::new(name, "out_of_range", message))
}

/// Parses an id; an invalid one is an unknown one.
fn parse_id(text: &str) -> Result<ReservationId, ApiError> {
    text.parse().map_err(|_| ReservationRefusal::not_found(text).into())
}
