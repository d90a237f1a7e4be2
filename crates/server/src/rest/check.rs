//! `POST /api/v1/ratelimit/check` and `/check/batch`: decisions on one or more subjects.

mod answer;
mod attributes;
pub(super) mod batch;
mod detailed;
mod question;

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::usecase::{AnyQuestion, CheckError};

use self::answer::Answer;
use super::{
    error::{ApiError, Detail},
    json_body::JsonBody,
    schemas::{Failing, RequestIdUsed, WithBody},
};

pub(super) use self::{
    answer::WireAnswer,
    attributes::WireAttributes,
    batch::check_batch,
    detailed::{WireDetailed, name as rule_name},
    question::{WireQuestion, request_id, scope, subject, text},
};

/// The path of [`check`].
pub(super) const PATH: &str = "/api/v1/ratelimit/check";

/// Admits or denies a request of a subject, and takes its cost if it is admitted.
#[utoipa::path(
    post,
    path = PATH,
    tag = "checks",
    request_body = WireQuestion<'_>,
    responses(
        (
            status = 200,
            description = "The decision, also if it is a denial. With `attributes` or `limits`: a `DetailedDecision`",
            body = WireAnswer<'_>,
            headers(
                ("X-RateLimit-Limit" = u64, description = "Maximum number of units at once"),
                ("X-RateLimit-Remaining" = u64, description = "Remaining units"),
                ("X-RateLimit-Reset" = u64, description = "Unix time in seconds at which the whole limit is available again"),
                ("Retry-After" = u64, description = "Seconds to wait before a retry; only on a denial"),
                ("X-RateLimit-Leased" = bool, description = "`true` if Redis was not asked; otherwise left out"),
                ("RateLimit-Policy" = String, description = "The rules that applied, the deciding one first, up to 1 KiB: name, quota and window"),
                ("RateLimit" = String, description = "Remaining units under each rule, and seconds until more are available"),
            ),
        ),
        RequestIdUsed,
        WithBody,
        Failing,
    ),
)]
pub(super) async fn check(
    State(checks): State<Arc<MeteredChecks>>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireQuestion<'_> = body.parse()?;
    if wire.is_detailed() {
        // On the heap, so that other checks do not carry its state.
        return Box::pin(check_detailed(&checks, &wire)).await;
    }
    let (question, dry_run) = wire.validate()?;

    let verdict = checks.decide(&question, dry_run).await?;
    Ok(Answer::new(&question, &verdict).into())
}

/// Answers a check with attributes, or one that asks for the limits that applied.
async fn check_detailed(
    checks: &MeteredChecks,
    wire: &WireQuestion<'_>,
) -> Result<Response, ApiError> {
    let limits = wire.limits().map_err(|detail| ApiError::Invalid(vec![detail]))?;
    let no_headers = HeaderMap::new();
    let named = wire.request_id(&no_headers);
    let named = named.map_err(|detail| ApiError::Invalid(vec![detail]))?;
    if let Some(request_id) = named {
        return check_refundable(checks, wire, request_id, limits).await;
    }
    if !wire.has_attributes() {
        let (question, dry_run) = wire.validate()?;
        let verdict = checks.decide(&question, dry_run).await?;
        return Ok(detailed::respond(Some(&verdict), limits));
    }
    let (question, dry_run) = wire.read_attributes().map_err(ApiError::Invalid)?;
    let verdict = checks.decide_attributes(&question, dry_run).await?;
    Ok(detailed::respond(verdict.as_ref(), limits))
}

/// Answers a check that can be refunded. A dry run takes nothing, and so its id stays unused.
async fn check_refundable(
    checks: &MeteredChecks,
    wire: &WireQuestion<'_>,
    request_id: &str,
    limits: bool,
) -> Result<Response, ApiError> {
    let (question, dry_run) = wire.any().map_err(ApiError::Invalid)?;
    let verdict = match &question {
        AnyQuestion::Subject(question) if dry_run => Some(checks.decide(question, true).await?),
        AnyQuestion::Attributes(question) if dry_run => {
            checks.decide_attributes(question, true).await?
        }
        question => checks.decide_refundable(question, request_id).await?,
    };
    match (&question, &verdict) {
        (AnyQuestion::Subject(question), Some(verdict)) if !limits => {
            Ok(Answer::new(question, verdict).into())
        }
        _ => Ok(detailed::respond(verdict.as_ref(), limits)),
    }
}

impl From<CheckError> for ApiError {
    fn from(error: CheckError) -> Self {
        let field = match &error {
            CheckError::NoSuchWindow { .. } => "window",
            CheckError::Cost(_) => "cost",
            CheckError::Batch(_) => "checks",
            CheckError::NoSuchRule(id) => return Self::NoSuchRule(id.to_string()),
            CheckError::OtherSubject { .. } => "identifier",
            CheckError::OverAttributes(_)
            | CheckError::Identifier { .. }
            | CheckError::Subject(_)
            | CheckError::TooManyRules => "attributes",
            CheckError::Store(cause) => return Self::store(cause),
        };
        Self::Invalid(vec![Detail::new(field, "invalid", error.to_string())])
    }
}
