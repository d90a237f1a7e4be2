//! `POST /api/v1/quotas/{id}/reservations/{reservation}/use`, `/settle` and `/cancel`.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;
use headgate_quota::SettledFor;
use serde::Deserialize;
use utoipa::ToSchema;

use super::wire::{WireSettled, WireUsed};
use crate::rest::{
    caller::Caller,
    error::{ApiError, Detail},
    field::Field,
    idempotency::mark,
    json,
    json_body::{EmptyBody, JsonBody, WireObject},
    path::PathPair,
    quotas::{
        increment::{amount, request_id},
        quota_id, reservation_id,
    },
    schemas::{Failing, NoSuchReservation, Protected, ReservationEnded, Undecided, WithBody},
};

/// The path of a use.
pub(in crate::rest) const USE: &str = "/api/v1/quotas/{id}/reservations/{reservation}/use";

/// The path of settling.
pub(in crate::rest) const SETTLE: &str = "/api/v1/quotas/{id}/reservations/{reservation}/settle";

/// The path of cancelling.
pub(in crate::rest) const CANCEL: &str = "/api/v1/quotas/{id}/reservations/{reservation}/cancel";

/// A use of a reservation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaReservationUse)]
pub(in crate::rest) struct WireUse<'a> {
    /// Units that were produced since the last use; 0 only renews the TTL.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 0, maximum = 9_007_199_254_740_992i64, example = 16)]
    amount: Field<'a>,
    /// Idempotency key: a retry of the latest use is charged once. Default: the `Idempotency-Key` header.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "chunk-17")]
    request_id: Field<'a>,
}

/// The units that a reservation took.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaSettle)]
pub(in crate::rest) struct WireSettle<'a> {
    /// Units in all, with those that were used while it ran.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 0, maximum = 9_007_199_254_740_992i64, example = 412)]
    amount: Field<'a>,
    /// Charges what is missing even past the limit; default false.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    overdraft: Field<'a>,
}

/// Charges what was produced while the reservation runs, and renews its TTL.
///
/// The reservation is extended within the limit, so that as much again can be used.
/// `stop` is true if nothing is left for that.
#[utoipa::path(
    post,
    path = USE,
    tag = "quotas",
    operation_id = "use_quota_reservation",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("reservation" = String, Path, description = "The reservation's id"),
        ("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none"),
    ),
    request_body = WireUse<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The units are charged", body = WireUsed), NoSuchReservation, ReservationEnded, WithBody, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn spend(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathPair(id, reservation): PathPair,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let (id, reservation) = (quota_id(&id)?, reservation_id(&reservation)?);
    let WireUse { amount: used, request_id: named } = body.parse()?;
    let (amount, request_id) = match (produced(used), request_id(named, &headers)) {
        (Ok(amount), Ok(request_id)) => (amount, request_id),
        (amount, request_id) => {
            let wrong = [amount.err(), request_id.err()];
            return Err(ApiError::Invalid(wrong.into_iter().flatten().collect()));
        }
    };
    let reservations = quotas.reservations();
    let done = reservations.spend(&id, &reservation, amount, request_id.as_deref()).await?;
    let mut response = json::respond(&WireUsed::from(&done));
    mark(&mut response, done.replayed);
    Ok(response)
}

/// Charges what the reservation took in all, and ends it.
///
/// The rest comes back. What is missing is taken within the limit, and `owed` says what the limit did not allow;
/// with `overdraft` it is taken even past the limit. A repeat is answered in the same way, and charged once.
#[utoipa::path(
    post,
    path = SETTLE,
    tag = "quotas",
    operation_id = "settle_quota_reservation",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("reservation" = String, Path, description = "The reservation's id"),
    ),
    request_body = WireSettle<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The reservation is settled", body = WireSettled), NoSuchReservation, ReservationEnded, WithBody, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn settle(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathPair(id, reservation): PathPair,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let (id, reservation) = (quota_id(&id)?, reservation_id(&reservation)?);
    let wire: WireSettle<'_> = body.parse()?;
    let settled_for = wire.settled_for().map_err(ApiError::Invalid)?;
    let done = quotas.reservations().settle(&id, &reservation, settled_for).await?;
    let mut response = json::respond(&WireSettled::from(&done));
    mark(&mut response, done.replayed);
    Ok(response)
}

/// Ends the reservation. What it holds comes back; what was used stays charged.
#[utoipa::path(
    post,
    path = CANCEL,
    tag = "quotas",
    operation_id = "cancel_quota_reservation",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("reservation" = String, Path, description = "The reservation's id"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The reservation is cancelled", body = WireSettled), NoSuchReservation, ReservationEnded, WithBody, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn cancel(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathPair(id, reservation): PathPair,
    body: EmptyBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    body.check()?;
    let (id, reservation) = (quota_id(&id)?, reservation_id(&reservation)?);
    let done = quotas.reservations().cancel(&id, &reservation).await?;
    let mut response = json::respond(&WireSettled::from(&done));
    mark(&mut response, done.replayed);
    Ok(response)
}

impl<'a> WireObject<'a> for WireUse<'a> {
    fn problems(self) -> Vec<Detail> {
        let named = request_id(self.request_id, &HeaderMap::new()).err();
        [produced(self.amount).err(), named].into_iter().flatten().collect()
    }
}

impl<'a> WireObject<'a> for WireSettle<'a> {
    fn problems(self) -> Vec<Detail> {
        self.settled_for().err().unwrap_or_default()
    }
}

impl WireSettle<'_> {
    fn settled_for(self) -> Result<SettledFor, Vec<Detail>> {
        let overdraft = self.overdraft.flag("overdraft");
        let overdraft =
            overdraft.map_err(|message| Detail::new("overdraft", "wrong_type", message));
        match (produced(self.amount), overdraft) {
            (Ok(amount), Ok(overdraft)) => Ok(SettledFor { amount, overdraft }),
            (amount, overdraft) => {
                Err([amount.err(), overdraft.err()].into_iter().flatten().collect())
            }
        }
    }
}

/// Parses an amount that may be 0, but not less.
fn produced(field: Field<'_>) -> Result<u64, Detail> {
    if let Field::Number(..0) = field {
        let message = "amount must not be negative".to_owned();
        return Err(Detail::new("amount", "out_of_range", message));
    }
    amount(field)
}
