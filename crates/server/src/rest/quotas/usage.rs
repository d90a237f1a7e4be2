//! `GET /api/v1/quotas/{id}/usage`: usage of a quota.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;

use super::{quota_id, wire::WireQuotaUsage};
use crate::rest::{
    caller::Caller,
    error::ApiError,
    json,
    path::PathParam,
    schemas::{Failing, NoSuchQuota, Protected, Undecided},
};

/// Shows usage in the current period.
#[utoipa::path(
    get,
    path = "/api/v1/quotas/{id}/usage",
    tag = "quotas",
    operation_id = "get_quota_usage",
    params(("id" = String, Path, description = "The policy's id")),
    security(("token" = [])),
    responses((status = 200, description = "The usage", body = WireQuotaUsage), NoSuchQuota, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn usage(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadQuotas).await?;
    let usage = quotas.usage(&quota_id(&id)?).await?;
    Ok(json::respond(&WireQuotaUsage::from(&usage)))
}
