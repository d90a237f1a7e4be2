//! `POST /api/v1/ratelimit/refund`: gives back what a check took.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use headgate::{Cost, Decision};
use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::usecase::AnyQuestion;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    check::WireQuestion,
    error::{ApiError, Detail},
    idempotency::mark,
    json,
    json_body::JsonBody,
    schemas::{Failing, NoSuchCheck, WithBody},
};

/// The path.
pub(super) const PATH: &str = "/api/v1/ratelimit/refund";

/// The limit after a refund.
#[derive(Serialize, ToSchema)]
#[schema(as = Refunded)]
pub(in crate::rest) struct WireRefunded<'a> {
    request_id: &'a str,
    /// Units that the check took. They returned as far as they still counted.
    cost: u64,
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

/// Gives back what a check took under its `request_id`, once, as far as it still counts.
///
/// The body is that of the check. A repeat gives back nothing more, and is answered with `Idempotent-Replayed: true`.
#[utoipa::path(
    post,
    path = PATH,
    tag = "checks",
    operation_id = "refund",
    params(("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none")),
    request_body = WireQuestion<'_>,
    responses((status = 200, description = "The units are back", body = WireRefunded<'_>), NoSuchCheck, WithBody, Failing),
)]
pub(super) async fn refund(
    State(checks): State<Arc<MeteredChecks>>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireQuestion<'_> = body.parse()?;
    let (question, request_id) = read(&wire, &headers).map_err(ApiError::Invalid)?;
    let done = checks.refund(&question, request_id).await?;
    let decision = done.decision.as_ref();
    let cost = match &question {
        AnyQuestion::Subject(question) => question.cost,
        AnyQuestion::Attributes(question) => question.cost,
    };
    let mut response = json::respond(&WireRefunded {
        request_id,
        cost: Cost::get(cost),
        limit: decision.map(|it| it.limit),
        remaining: decision.map(|it| it.remaining),
        reset_at: decision.map(Decision::reset_at_secs),
    });
    mark(&mut response, done.replayed);
    Ok(response)
}

/// Returns the check and its request id, or all that is invalid.
fn read<'s>(
    wire: &'s WireQuestion<'_>,
    headers: &'s HeaderMap,
) -> Result<(AnyQuestion<'s>, &'s str), Vec<Detail>> {
    let missing = || Detail::new("request_id", "required", "request_id is required".to_owned());
    let named = wire.request_id(headers).and_then(|named| named.ok_or_else(missing));
    match (wire.any(), named) {
        (Ok((question, _)), Ok(named)) => Ok((question, named)),
        (question, named) => Err(question.err().into_iter().flatten().chain(named.err()).collect()),
    }
}
