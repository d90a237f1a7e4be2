//! `POST /api/v1/quotas/{id}/check`: a check that uses nothing.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::quotas::QuotaServices;
use headgate_auth::Action;
use headgate_quota::usecase::UsageCheck;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{increment, quota_id, wire::WireQuotaUsage};
use crate::rest::{
    caller::Caller,
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    limit_headers,
    path::PathParam,
    schemas::{Failing, NoSuchQuota, Protected, Undecided, WithBody},
};

/// The amount to check.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaQuestion)]
pub(in crate::rest) struct WireQuestion<'a> {
    /// Default 1.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 9_007_199_254_740_992i64, example = 1)]
    amount: Field<'a>,
}

/// Decision and usage.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaCheck)]
pub(in crate::rest) struct WireChecked {
    #[serde(flatten)]
    usage: WireQuotaUsage,
    allowed: bool,
}

/// Checks if an amount would be admitted now, and uses nothing.
#[utoipa::path(
    post,
    path = "/api/v1/quotas/{id}/check",
    tag = "quotas",
    operation_id = "check_quota",
    params(("id" = String, Path, description = "The policy's id")),
    request_body = Option<WireQuestion<'_>>,
    security(("token" = [])),
    responses((status = 200, description = "Decision and usage", body = WireChecked), NoSuchQuota, WithBody, Protected, Undecided, Failing),
)]
pub(in crate::rest) async fn check(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    body: Option<JsonBody>,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let id = quota_id(&id)?;
    let question: WireQuestion<'_> =
        body.as_ref().map(JsonBody::parse).transpose()?.unwrap_or_default();
    let amount = question.amount().map_err(|wrong| ApiError::Invalid(vec![wrong]))?;
    let UsageCheck { allowed, usage } = quotas.check(&id, amount).await?;
    let mut response = json::respond(&WireChecked { usage: (&usage).into(), allowed });
    limit_headers::write_quota(response.headers_mut(), &usage);
    Ok(response)
}

impl<'a> WireObject<'a> for WireQuestion<'a> {
    fn problems(self) -> Vec<Detail> {
        self.amount().err().into_iter().collect()
    }
}

impl WireQuestion<'_> {
    fn amount(self) -> Result<Option<u64>, Detail> {
        match self.amount {
            Field::Missing | Field::Null => Ok(None),
            amount => increment::amount(amount).map(Some),
        }
    }
}
