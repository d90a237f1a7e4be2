//! `POST /api/v1/quotas/{id}/usage/refund`: gives back what an increment charged.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::quota_id;
use crate::rest::{
    caller::Caller,
    check::text,
    error::{ApiError, Detail},
    field::Field,
    idempotency, json,
    json_body::{JsonBody, WireObject},
    limit_headers,
    path::PathParam,
    schemas::{Failing, NoRefund, Protected, Undecided, WithBody},
};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/quotas/{id}/usage/refund";

/// A refund.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaRefund)]
pub(in crate::rest) struct WireRefund<'a> {
    /// The `request_id` of the increment.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// Usage after a refund.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaRefunded)]
pub(in crate::rest) struct WireRefunded<'a> {
    quota_id: String,
    request_id: &'a str,
    /// Units that came back: those of the increment, or 0 if usage was reset since.
    refunded: u64,
    used: u64,
    reserved: u64,
    remaining: u64,
    /// Used units in percent of the limit, with two decimals, rounded down.
    #[schema(example = 75.24)]
    usage_percent: f64,
    /// True if everything is used.
    exceeded: bool,
}

/// Gives back what an increment of the current period charged, once.
///
/// A repeat gives back nothing more, and is answered with the same `refunded` and `Idempotent-Replayed: true`.
/// The `request_id` is not charged again.
#[utoipa::path(
    post,
    path = PATH,
    tag = "quotas",
    operation_id = "refund_quota_usage",
    params(("id" = String, Path, description = "The policy's id")),
    request_body = WireRefund<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The units are back", body = WireRefunded<'_>), NoRefund, WithBody, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn refund(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let id = quota_id(&id)?;
    let wire: WireRefund<'_> = body.parse()?;
    let request_id = wire.request_id().map_err(|wrong| ApiError::Invalid(vec![wrong]))?;
    let done = quotas.refund(&id, request_id).await?;
    let usage = &done.usage;
    let mut response = json::respond(&WireRefunded {
        quota_id: usage.quota_id.to_string(),
        request_id,
        refunded: done.refunded,
        used: usage.used,
        reserved: usage.reserved,
        remaining: usage.remaining,
        usage_percent: usage.usage_percent,
        exceeded: usage.exceeded,
    });
    limit_headers::write_quota(response.headers_mut(), usage);
    idempotency::mark(&mut response, done.replayed);
    Ok(response)
}

impl<'a> WireObject<'a> for WireRefund<'a> {
    fn problems(self) -> Vec<Detail> {
        self.request_id().err().into_iter().collect()
    }
}

impl WireRefund<'_> {
    fn request_id(&self) -> Result<&str, Detail> {
        let missing = || Detail::new("request_id", "required", "request_id is required".to_owned());
        text("request_id", &self.request_id)?.ok_or_else(missing)
    }
}
