//! `POST /api/v1/ratelimit/reservations/{id}/use`, `/settle` and `/cancel`.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::usecase::check::reservations::{Charge, Costs};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    costs::WireCosts,
    parse_id,
    wire::{WireCancelled, WireSettled, WireUsed},
};
use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{EmptyBody, JsonBody, WireObject},
    path::PathParam,
    schemas::{Failing, LimitReservationEnded, NoSuchLimitReservation, WithBody},
};

/// The path of a use.
pub(in crate::rest) const USE: &str = "/api/v1/ratelimit/reservations/{id}/use";

/// The path of settling.
pub(in crate::rest) const SETTLE: &str = "/api/v1/ratelimit/reservations/{id}/settle";

/// The path of cancelling.
pub(in crate::rest) const CANCEL: &str = "/api/v1/ratelimit/reservations/{id}/cancel";

/// A use of a reservation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = ReservationUse)]
pub(in crate::rest) struct WireUse<'a> {
    /// Units that were spent since the last use: one number for every check, or a list with one for each; 0 only renews the TTL.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_992i64, example = 16)]
    cost: WireCosts<'a>,
    /// In place of `cost`: units that were spent since the reservation was made, of which those are charged that were not charged before. A repeat charges nothing.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 0, maximum = 9_007_199_254_740_992i64, example = 48)]
    total: WireCosts<'a>,
}

/// What a reservation cost.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Settle)]
pub(in crate::rest) struct WireSettle<'a> {
    /// Units in all, with those that were used while it ran: one number for every check, or a list with one for each.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 0, maximum = 9_007_199_254_740_992i64, example = 412)]
    cost: WireCosts<'a>,
    /// Charges what is missing even past the limit; default false.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    overdraft: Field<'a>,
}

/// Charges what was spent while the reservation runs, and renews its TTL.
///
/// The reservation then holds as many units again, if the limit has them. `stop` is true if it holds none.
/// A repeat of a `total` charges nothing; a repeat of a `cost` is charged again.
#[utoipa::path(
    post,
    path = USE,
    tag = "reservations",
    operation_id = "use_reservation",
    params(("id" = String, Path, description = "The reservation's id")),
    request_body = WireUse<'_>,
    responses((status = 200, description = "The units are charged", body = WireUsed), NoSuchLimitReservation, LimitReservationEnded, WithBody, Failing),
)]
pub(in crate::rest) async fn spend(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let id = parse_id(&id)?;
    let wire: WireUse<'_> = body.parse()?;
    let charge = wire.read().map_err(ApiError::Invalid)?;
    let used = checks.use_reservation(&id, &charge).await?;
    Ok(json::respond(&WireUsed::new(&id, &used)))
}

/// Charges what the reservation cost in all, and ends it.
///
/// The rest returns. What is missing is taken as far as it is available, and `owed` says how much was not;
/// with `overdraft` it is taken even past the limit. A repeat is answered in the same way, and charged once.
#[utoipa::path(
    post,
    path = SETTLE,
    tag = "reservations",
    operation_id = "settle_reservation",
    params(("id" = String, Path, description = "The reservation's id")),
    request_body = WireSettle<'_>,
    responses((status = 200, description = "The reservation is settled", body = WireSettled), NoSuchLimitReservation, LimitReservationEnded, WithBody, Failing),
)]
pub(in crate::rest) async fn settle(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let id = parse_id(&id)?;
    let wire: WireSettle<'_> = body.parse()?;
    let (costs, overdraft) = wire.read().map_err(ApiError::Invalid)?;
    let settled = checks.settle_reservation(&id, &costs, overdraft).await?;
    Ok(json::respond(&WireSettled::new(&id, &settled)))
}

/// Ends the reservation. What it holds returns; what was used stays charged.
#[utoipa::path(
    post,
    path = CANCEL,
    tag = "reservations",
    operation_id = "cancel_reservation",
    params(("id" = String, Path, description = "The reservation's id")),
    responses((status = 200, description = "The reservation is cancelled", body = WireCancelled), NoSuchLimitReservation, LimitReservationEnded, WithBody, Failing),
)]
pub(in crate::rest) async fn cancel(
    State(checks): State<Arc<MeteredChecks>>,
    PathParam(id): PathParam,
    body: EmptyBody,
) -> Result<Response, ApiError> {
    body.check()?;
    let id = parse_id(&id)?;
    checks.cancel_reservation(&id).await?;
    Ok(json::respond(&WireCancelled::new(&id)))
}

impl<'a> WireObject<'a> for WireUse<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireUse<'_> {
    fn read(&self) -> Result<Charge, Vec<Detail>> {
        let wrong = |field, reason, message: &str| {
            Err(vec![Detail::new(field, reason, message.to_owned())])
        };
        match (self.cost.is_missing(), self.total.is_missing()) {
            (true, true) => wrong("cost", "required", "cost or total is required"),
            (false, true) => self.cost.read("cost").map(Charge::Cost),
            (true, false) => self.total.read("total").map(Charge::Total),
            (false, false) => {
                let message = "total cannot be combined with cost: send one of them";
                wrong("total", "invalid", message)
            }
        }
    }
}

impl<'a> WireObject<'a> for WireSettle<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireSettle<'_> {
    fn read(&self) -> Result<(Costs, bool), Vec<Detail>> {
        let overdraft = self.overdraft.flag("overdraft");
        let overdraft =
            overdraft.map_err(|message| Detail::new("overdraft", "wrong_type", message));
        match (self.cost.read("cost"), overdraft) {
            (Ok(costs), Ok(overdraft)) => Ok((costs, overdraft)),
            (costs, overdraft) => {
                Err(costs.err().into_iter().flatten().chain(overdraft.err()).collect())
            }
        }
    }
}
