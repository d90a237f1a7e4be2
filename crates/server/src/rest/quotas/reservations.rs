//! `/api/v1/quotas/{id}/reservations`: units that are set aside before their use is known.

pub(in crate::rest) mod changes;
mod wire;

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;
use headgate_quota::{Input, Reservation, usecase::ReservationRequest};
use serde::Deserialize;
use utoipa::ToSchema;

use self::wire::{WireReservation, WireReserved};
use super::{
    increment::{amount, request_id},
    quota_id, reservation_id,
};
use crate::rest::{
    caller::Caller,
    error::{ApiError, Detail},
    field::Field,
    idempotency::mark,
    json,
    json_body::{JsonBody, WireObject},
    path::{PathPair, PathParam},
    schemas::{
        Exceeded, Failing, NoSuchQuota, NoSuchReservation, Protected, RequestIdReused, Undecided,
        WithBody,
    },
};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/quotas/{id}/reservations";

/// The path of one reservation.
pub(in crate::rest) const ONE: &str = "/api/v1/quotas/{id}/reservations/{reservation}";

/// A reservation to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaReserve)]
pub(in crate::rest) struct WireReserve<'a> {
    /// At most the policy's limit.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 1, maximum = 9_007_199_254_740_992i64, example = 500)]
    amount: Field<'a>,
    /// Seconds after which the units come back, unless the reservation is used or ended before; default 30.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 3600, example = 30)]
    ttl_seconds: Field<'a>,
    /// Idempotency key: a reservation is made once per key and period. Default: the `Idempotency-Key` header.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// Sets units aside if enough are left in the current period. A reservation that is answered with 201 is durable.
///
/// The units count against the limit until they are charged, come back, or the TTL is over by the database's clock.
/// A retry with the same `request_id` gets the same reservation with `Idempotent-Replayed: true`.
#[utoipa::path(
    post,
    path = PATH,
    tag = "quotas",
    operation_id = "reserve_quota",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none"),
    ),
    request_body = WireReserve<'_>,
    security(("token" = [])),
    responses(
        (status = 201, description = "The units are reserved", body = WireReserved),
        NoSuchQuota, RequestIdReused, Exceeded, WithBody, Protected, Undecided, Failing,
    ),
)]
pub(in crate::rest) async fn reserve(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let id = quota_id(&id)?;
    let WireReserve { amount: wanted, ttl_seconds, request_id: named } = body.parse()?;
    let fields = (amount(wanted), ttl(ttl_seconds), request_id(named, &headers));
    let (amount, ttl_seconds, request_id) = match fields {
        (Ok(amount), Ok(ttl), Ok(request_id)) => (amount, ttl, request_id),
        (amount, ttl, request_id) => {
            let wrong = [amount.err(), ttl.err(), request_id.err()];
            return Err(ApiError::Invalid(wrong.into_iter().flatten().collect()));
        }
    };
    let request = ReservationRequest { amount, ttl_seconds, request_id: request_id.as_deref() };
    let done = quotas.reservations().reserve(&id, request).await?;
    let mut response = json::respond(&WireReserved::from(&done));
    *response.status_mut() = StatusCode::CREATED;
    mark(&mut response, done.replayed);
    Ok(response)
}

/// Shows a reservation.
#[utoipa::path(
    get,
    path = ONE,
    tag = "quotas",
    operation_id = "get_quota_reservation",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("reservation" = String, Path, description = "The reservation's id"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The reservation", body = WireReservation), NoSuchReservation, Protected, Failing),
)]
pub(in crate::rest) async fn get(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathPair(id, reservation): PathPair,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadQuotas).await?;
    let (id, reservation) = (quota_id(&id)?, reservation_id(&reservation)?);
    let found = quotas.reservations().get(&id, &reservation).await?;
    Ok(json::respond(&WireReservation::new(&id, &found)))
}

impl<'a> WireObject<'a> for WireReserve<'a> {
    fn problems(self) -> Vec<Detail> {
        let named = request_id(self.request_id, &HeaderMap::new()).err();
        [amount(self.amount).err(), ttl(self.ttl_seconds).err(), named]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Parses the TTL; its bounds are checked later.
fn ttl(field: Field<'_>) -> Result<u64, Detail> {
    match field.into_number() {
        Input::Given(number) => Ok(number.try_into().unwrap_or(0)),
        Input::Missing | Input::Null => Ok(Reservation::DEFAULT_TTL.as_secs()),
        Input::WrongType(kind) => {
            let message = format!("ttl_seconds must be a whole number, got {kind}");
            Err(Detail::new("ttl_seconds", "wrong_type", message))
        }
    }
}
