//! `POST /api/v1/ratelimit/reset`: restores the whole limit of a subject.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Key;
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{Scope, usecase::ResetError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    caller::Caller,
    check::{scope, subject, text},
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    schemas::{self, Failing, Protected, WithBody},
};

const MAX_REASON_CHARS: usize = 1000;

/// The subject to reset.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Reset)]
pub(super) struct WireReset<'a> {
    /// Kind of subject.
    #[serde(borrow, default)]
    #[schema(value_type = schemas::Scope, required = true)]
    scope: Field<'a>,
    /// Identifier of the subject.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$")]
    identifier: Field<'a>,
    /// Reason, for the audit log.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    reason: Field<'a>,
}

/// The outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = Done)]
pub(super) struct WireDone {
    success: bool,
    message: String,
}

/// Restores the whole limit of a subject, under every window and algorithm.
#[utoipa::path(
    post,
    path = "/api/v1/ratelimit/reset",
    tag = "subjects",
    request_body = WireReset<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The reset is done", body = WireDone), WithBody, Protected, Failing),
)]
pub(super) async fn reset(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::ResetCounters).await?;
    let wire: WireReset<'_> = body.parse()?;
    let (scope, subject, reason) = wire.read().map_err(ApiError::Invalid)?;
    admin.reset(scope, subject, reason, author).await?;
    let message = format!("rate limit counter reset for {scope}:{}", subject.subject());
    Ok(json::respond(&WireDone { success: true, message }))
}

impl<'a> WireObject<'a> for WireReset<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireReset<'_> {
    /// Returns the subject and the reason, or all that is invalid.
    fn read(&self) -> Result<(Scope, Key<'_>, Option<String>), Vec<Detail>> {
        let scope = text("scope", &self.scope).and_then(scope);
        let subject = text("identifier", &self.identifier).and_then(subject);
        match (scope, subject, self.reason()) {
            (Ok(scope), Ok(subject), Ok(reason)) => Ok((scope, subject, reason)),
            (scope, subject, reason) => {
                let wrong = [scope.err(), subject.err(), reason.err()];
                Err(wrong.into_iter().flatten().collect())
            }
        }
    }

    fn reason(&self) -> Result<Option<String>, Detail> {
        match text("reason", &self.reason)? {
            Some(text) if text.chars().count() > MAX_REASON_CHARS => {
                let message = format!("reason must be at most {MAX_REASON_CHARS} characters");
                Err(Detail::new("reason", "length", message))
            }
            reason => Ok(reason.map(str::to_owned)),
        }
    }
}

impl From<ResetError> for ApiError {
    fn from(error: ResetError) -> Self {
        match error {
            ResetError::Unrecorded(error) => error.into(),
            ResetError::Unconfirmed(cause) if cause.is_temporary() => {
                Self::ResetUnconfirmed(cause.to_string())
            }
            ResetError::Unconfirmed(cause) | ResetError::NotSent(cause) => Self::store(&cause),
        }
    }
}
