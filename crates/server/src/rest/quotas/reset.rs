//! `POST /api/v1/quotas/{id}/usage/reset`: restores the whole quota.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Timestamp;
use headgate_api::quotas::{QuotaRefusal, QuotaServices};
use headgate_auth::Action;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::quota_id;
use crate::rest::{
    caller::Caller,
    check::text,
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    path::PathParam,
    schemas::{Failing, NoSuchQuota, Protected, WithBody},
    time,
};

/// A reset of usage.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaReset)]
pub(in crate::rest) struct WireQuotaReset<'a> {
    /// Reason, for the audit log.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 1000, pattern = r"\S", example = "The plan changed")]
    reason: Field<'a>,
}

/// The outcome of a reset.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaResetDone)]
pub(in crate::rest) struct WireQuotaResetDone {
    quota_id: String,
    /// Always 0.
    used: u64,
    /// Time of the reset.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    reset_at: Timestamp,
    /// Author of the reset, from the token.
    #[schema(example = "admin@example.com")]
    reset_by: String,
}

/// Sets usage in the current period to 0.
#[utoipa::path(
    post,
    path = "/api/v1/quotas/{id}/usage/reset",
    tag = "quotas",
    operation_id = "reset_quota_usage",
    params(("id" = String, Path, description = "The policy's id")),
    request_body = WireQuotaReset<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The reset is done", body = WireQuotaResetDone), NoSuchQuota, WithBody, Protected, Failing),
)]
pub(in crate::rest) async fn reset(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ResetQuotas).await?;
    let id = quota_id(&id)?;
    let wire: WireQuotaReset<'_> = body.parse()?;
    let reason = wire.reason().map_err(|wrong| ApiError::Invalid(vec![wrong]))?;
    let done = quotas.reset(&id, reason, author).await;
    let done = done.map_err(QuotaRefusal::from)?;
    Ok(json::respond(&WireQuotaResetDone {
        quota_id: done.quota_id.to_string(),
        used: 0,
        reset_at: done.reset_at,
        reset_by: done.reset_by,
    }))
}

impl<'a> WireObject<'a> for WireQuotaReset<'a> {
    fn problems(self) -> Vec<Detail> {
        self.reason().err().into_iter().collect()
    }
}

impl WireQuotaReset<'_> {
    fn reason(&self) -> Result<&str, Detail> {
        Ok(text("reason", &self.reason)?.unwrap_or_default())
    }
}
