//! `POST /api/v1/quotas/{id}/usage/increment`: uses an amount of a quota.

use std::{borrow::Cow, sync::Arc};

use axum::{extract::State, http::HeaderMap, response::Response};
use headgate_api::quotas::{QuotaRefusal, QuotaServices};
use headgate_auth::Action;
use headgate_quota::{Input, QuotaUsage, usecase::Incremented};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::quota_id;
use crate::rest::{
    caller::Caller,
    error::{ApiError, Detail},
    field::Field,
    idempotency, json,
    json_body::{JsonBody, WireObject},
    limit_headers,
    path::PathParam,
    schemas::{Exceeded, Failing, NoSuchQuota, Protected, RequestIdReused, Undecided, WithBody},
};

/// The path.
pub(in crate::rest) const PATH: &str = "/api/v1/quotas/{id}/usage/increment";

/// An increment. Unknown fields are errors: a misspelt one would charge the wrong amount.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaIncrement)]
pub(in crate::rest) struct WireIncrement<'a> {
    /// At most the policy's limit.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 1, maximum = 9_007_199_254_740_992i64, example = 1)]
    amount: Field<'a>,
    /// Idempotency key: an increment is charged once per key and period. Default: the `Idempotency-Key` header.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$", example = "req_abc123def456")]
    request_id: Field<'a>,
}

/// Usage after an increment.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaIncremented)]
pub(in crate::rest) struct WireIncremented {
    quota_id: String,
    used: u64,
    remaining: u64,
    /// With two decimals, rounded down.
    #[schema(example = 75.24)]
    usage_percent: f64,
    /// True if nothing is left afterwards.
    exceeded: bool,
    /// Always true: a denied increment is a 429.
    allowed: bool,
}

/// Uses an amount if enough is left in the current period. An increment that is answered with 200 is durable.
///
/// A retry with the same `request_id` gets the first answer with `Idempotent-Replayed: true`, and is not charged again.
#[utoipa::path(
    post,
    path = PATH,
    tag = "quotas",
    operation_id = "increment_quota_usage",
    params(
        ("id" = String, Path, description = "The policy's id"),
        ("Idempotency-Key" = Option<String>, Header, description = "The `request_id`, if the body has none"),
    ),
    request_body = WireIncrement<'_>,
    security(("token" = [])),
    responses(
        (status = 200, description = "The amount is used", body = WireIncremented),
        NoSuchQuota, RequestIdReused, Exceeded, WithBody, Protected, Undecided, Failing,
    ),
)]
pub(in crate::rest) async fn increment(
    State(quotas): State<Arc<QuotaServices>>,
    caller: Caller,
    PathParam(id): PathParam,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::UseQuotas).await?;
    let id = quota_id(&id)?;
    let WireIncrement { amount: wanted, request_id: named } = body.parse()?;
    let (amount, request_id) = match (amount(wanted), request_id(named, &headers)) {
        (Ok(amount), Ok(request_id)) => (amount, request_id),
        (amount, request_id) => {
            let wrong = [amount.err(), request_id.err()];
            return Err(ApiError::Invalid(wrong.into_iter().flatten().collect()));
        }
    };
    let done = quotas.increment(&id, amount, request_id.as_deref()).await?;
    Ok(respond(&done))
}

/// The error of an increment that timed out. It may still be written to the ledger: a client that
/// sends it again as new would be charged twice.
pub(in crate::rest) fn unconfirmed() -> ApiError {
    QuotaRefusal::Unconfirmed("the request took too long".to_owned()).into()
}

impl<'a> WireObject<'a> for WireIncrement<'a> {
    fn problems(self) -> Vec<Detail> {
        let named = request_id(self.request_id, &HeaderMap::new()).err();
        [amount(self.amount).err(), named].into_iter().flatten().collect()
    }
}

/// Parses the amount; its bounds are checked later.
pub(super) fn amount(field: Field<'_>) -> Result<u64, Detail> {
    let (reason, message) = match field.into_number() {
        Input::Given(number) => return Ok(number.try_into().unwrap_or(0)),
        Input::Missing | Input::Null => ("required", "amount is required".to_owned()),
        Input::WrongType(kind) => {
            ("wrong_type", format!("amount must be a whole number, got {kind}"))
        }
    };
    Err(Detail::new("amount", reason, message))
}

/// The idempotency key: the body's, else the header's.
pub(super) fn request_id<'a>(
    field: Field<'a>,
    headers: &'a HeaderMap,
) -> Result<Option<Cow<'a, str>>, Detail> {
    match field {
        Field::Text(text) => return Ok(Some(text)),
        Field::Missing | Field::Null => {}
        other => {
            let message = other.text("request_id").err().unwrap_or_default();
            return Err(Detail::new("request_id", "wrong_type", message));
        }
    }
    Ok(idempotency::key(headers)?.map(Cow::Borrowed))
}

fn respond(done: &Incremented) -> Response {
    let QuotaUsage { quota_id, used, remaining, usage_percent, exceeded, .. } = &done.usage;
    let mut response = json::respond(&WireIncremented {
        quota_id: quota_id.to_string(),
        used: *used,
        remaining: *remaining,
        usage_percent: *usage_percent,
        exceeded: *exceeded,
        allowed: done.allowed,
    });
    limit_headers::write_quota(response.headers_mut(), &done.usage);
    idempotency::mark(&mut response, done.replayed);
    response
}
