//! `GET /api/v1/quotas/{id}/history`: usage by period.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Timestamp;
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;
use headgate_quota::{PeriodUsage, QuotaUsage};
use serde::Serialize;
use utoipa::ToSchema;

use super::quota_id;
use crate::rest::{
    caller::Caller,
    error::ApiError,
    json,
    page::WirePagination,
    path::PathParam,
    query::{PAGE, Query},
    schemas::{Failing, Invalid, NoSuchQuota, Protected},
    time,
};

/// One page of the periods in which a quota was used.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaHistory)]
pub(in crate::rest) struct WireHistory {
    quota_id: String,
    history: Vec<WirePeriod>,
    pagination: WirePagination,
}

/// Usage in a period.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaPeriodUsage)]
pub(in crate::rest) struct WirePeriod {
    /// The day or the month, by the policy's calendar.
    #[schema(example = "2026-02-23")]
    period_name: String,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    period_start: Timestamp,
    /// The last millisecond of the period.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    period_end: Timestamp,
    /// The limit when usage last changed.
    limit: u64,
    used: u64,
    /// With two decimals, rounded down.
    usage_percent: f64,
    exceeded: bool,
    /// True once the period is over and closed.
    closed: bool,
    /// Time of the last change of usage.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// Lists the periods in which a quota was used, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/quotas/{id}/history",
    tag = "quotas",
    operation_id = "list_quota_history",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("page" = Option<u32>, Query, minimum = 1, description = "Page number; default 1"),
        ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Items per page; default 20"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "One page", body = WireHistory), NoSuchQuota, Invalid, Protected, Failing),
)]
pub(in crate::rest) async fn history(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadQuotas).await?;
    let id = quota_id(&id)?;
    let mut reader = query.reader(&[&PAGE]);
    let page = reader.page();
    reader.finish()?;
    let listed = quotas.history(&id, page).await?;
    let pagination = WirePagination::from(&listed);
    let history = listed.items.iter().map(WirePeriod::from).collect();
    Ok(json::respond(&WireHistory { quota_id: id.to_string(), history, pagination }))
}

impl From<&PeriodUsage> for WirePeriod {
    fn from(period: &PeriodUsage) -> Self {
        let PeriodUsage { span, limit, used, closed_at, updated_at, .. } = period;
        Self {
            period_name: span.name.clone(),
            period_start: span.start,
            period_end: span.last(),
            limit: *limit,
            used: *used,
            usage_percent: QuotaUsage::percent(*used, *limit),
            exceeded: QuotaUsage::is_exceeded(*used, *limit),
            closed: closed_at.is_some(),
            updated_at: *updated_at,
        }
    }
}
