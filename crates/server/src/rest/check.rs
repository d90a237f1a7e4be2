//! `POST /api/v1/ratelimit/check` and `/check/batch`: decisions on one or more subjects.

mod answer;
pub(super) mod batch;
mod question;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::usecase::CheckError;

use self::answer::Answer;
use super::{
    error::{ApiError, Detail},
    json_body::JsonBody,
    schemas::{Failing, WithBody},
};

pub(super) use self::{
    answer::WireAnswer,
    batch::check_batch,
    question::{WireQuestion, scope, subject, text},
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
            description = "The decision, also if it is a denial",
            body = WireAnswer<'_>,
            headers(
                ("X-RateLimit-Limit" = u64, description = "Maximum number of units at once"),
                ("X-RateLimit-Remaining" = u64, description = "Remaining units"),
                ("X-RateLimit-Reset" = u64, description = "Unix time in seconds at which the whole limit is available again"),
                ("Retry-After" = u64, description = "Seconds to wait before a retry; only on a denial"),
                ("RateLimit-Policy" = String, description = "Every rule that applied: its name, quota and window"),
                ("RateLimit" = String, description = "Remaining units under each rule, and seconds until more are available"),
            ),
        ),
        WithBody,
        Failing,
    ),
)]
pub(super) async fn check(
    State(checks): State<Arc<MeteredChecks>>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireQuestion<'_> = body.parse()?;
    let (question, dry_run) = wire.validate()?;

    let verdict = checks.decide(&question, dry_run).await?;
    Ok(Answer::new(&question, &verdict).into())
}

impl From<CheckError> for ApiError {
    fn from(error: CheckError) -> Self {
        let field = match &error {
            CheckError::NoSuchWindow { .. } => "window",
            CheckError::Cost(_) => "cost",
            CheckError::Batch(_) => "checks",
            CheckError::NoSuchRule(id) => return Self::NoSuchRule(id.to_string()),
            CheckError::OtherSubject { .. } => "identifier",
            CheckError::Store(cause) => return Self::store(cause),
        };
        Self::Invalid(vec![Detail::new(field, "invalid", error.to_string())])
    }
}
