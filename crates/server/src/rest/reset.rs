//! `POST /api/v1/ratelimit/reset`: restores the whole limit of a subject.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Key;
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{Attributes, Scope, usecase::ResetError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    caller::Caller,
    check::{WireAttributes, scope, subject, text},
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    schemas::{self, Failing, Protected, WithBody},
};

const MAX_REASON_CHARS: usize = 1000;

/// The subject to reset, or the attributes of a check.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Reset)]
pub(super) struct WireReset<'a> {
    /// Kind of subject; required without `attributes`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<schemas::Scope>)]
    scope: Field<'a>,
    /// Identifier of the subject; required without `attributes`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$")]
    identifier: Field<'a>,
    /// As in a check, instead of `scope` and `identifier`: resets what such a check counts.
    #[serde(borrow, default)]
    #[schema(value_type = Option<Object>, example = json!({"tenant": "acme"}))]
    attributes: WireAttributes<'a>,
    /// Reason, for the audit log.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, max_length = 1000)]
    reason: Field<'a>,
}

/// What is reset.
pub(super) enum ResetTarget<'a> {
    Subject(Scope, Key<'a>),
    Attributes(Box<Attributes<'a>>),
}

/// The outcome.
#[derive(Serialize, ToSchema)]
#[schema(as = Done)]
pub(super) struct WireDone {
    success: bool,
    message: String,
}

/// Restores the whole limit of a subject, under every window and algorithm, or what a check with
/// attributes counts.
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
    let (target, reason) = wire.read().map_err(ApiError::Invalid)?;
    let message = match target {
        ResetTarget::Subject(scope, subject) => {
            admin.reset(scope, subject, reason, author).await?;
            format!("rate limit counter reset for {scope}:{}", subject.subject())
        }
        ResetTarget::Attributes(attributes) => {
            admin.reset_attributes(attributes.into_owned(), reason, author).await?;
            "rate limit counters reset for these attributes".to_owned()
        }
    };
    Ok(json::respond(&WireDone { success: true, message }))
}

impl<'a> WireObject<'a> for WireReset<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireReset<'_> {
    /// Returns what to reset and the reason, or all that is invalid.
    pub(super) fn read(&self) -> Result<(ResetTarget<'_>, Option<String>), Vec<Detail>> {
        let target = if self.attributes.is_given() { self.by_attributes() } else { self.subject() };
        match (target, self.reason()) {
            (Ok(target), Ok(reason)) => Ok((target, reason)),
            (target, reason) => {
                Err(target.err().into_iter().flatten().chain(reason.err()).collect())
            }
        }
    }

    fn subject(&self) -> Result<ResetTarget<'_>, Vec<Detail>> {
        let scope = text("scope", &self.scope).and_then(scope);
        let subject = text("identifier", &self.identifier).and_then(subject);
        match (scope, subject) {
            (Ok(scope), Ok(subject)) => Ok(ResetTarget::Subject(scope, subject)),
            (scope, subject) => Err(scope.err().into_iter().chain(subject.err()).collect()),
        }
    }

    fn by_attributes(&self) -> Result<ResetTarget<'_>, Vec<Detail>> {
        let given = [("scope", &self.scope), ("identifier", &self.identifier)];
        let given =
            given.into_iter().filter(|(name, field)| !matches!(text(name, field), Ok(None)));
        let mut wrong: Vec<Detail> = given
            .map(|(name, _)| {
                let message = format!("send either {name} or attributes, in which it can be");
                Detail::new(name, "invalid", message)
            })
            .collect();
        match self.attributes.read() {
            Ok(attributes) if wrong.is_empty() && !attributes.is_empty() => {
                Ok(ResetTarget::Attributes(Box::new(attributes)))
            }
            Ok(attributes) => {
                if attributes.is_empty() {
                    let message = "attributes must not be empty".to_owned();
                    wrong.push(Detail::new("attributes", "required", message));
                }
                Err(wrong)
            }
            Err(others) => Err(wrong.into_iter().chain(others).collect()),
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
