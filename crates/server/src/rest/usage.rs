//! `GET /api/v1/ratelimit/usage`: usage under a rule.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::usecase::{Usage, UsageError, usage::SubjectUsage};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    error::{ApiError, Detail},
    json,
    query::Query,
    rules::rule_id,
    schemas::{self, Failing, Invalid, NoSuchRule, Protected},
};

/// Usage under a rule.
#[derive(Serialize, ToSchema)]
#[schema(as = Usage)]
pub(super) struct WireUsage {
    #[schema(format = "uuid")]
    rule_id: String,
    rule_name: String,
    #[schema(format = "uint32")]
    limit: u32,
    window_seconds: u32,
    #[schema(value_type = schemas::Algorithm)]
    algorithm: &'static str,
    enabled: bool,
    #[serde(flatten)]
    standing: WireSubjectUsage,
}

/// Usage of a subject; left out if nothing is known.
#[derive(Serialize, ToSchema)]
#[schema(as = Standing)]
pub(super) struct WireSubjectUsage {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reset_at: Option<u64>,
}

/// Shows a rule and the usage of a subject: the rule's own identifier, or the given one.
#[utoipa::path(
    get,
    path = "/api/v1/ratelimit/usage",
    tag = "subjects",
    params(
        ("rule_id" = String, Query, format = "uuid", description = "Id of the rule"),
        ("identifier" = Option<String>, Query, description = "Identifier of the subject, if the rule matches several"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The usage", body = WireUsage), NoSuchRule, Invalid, Protected, Failing),
)]
pub(super) async fn usage(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadUsage).await?;
    let reader = query.reader(&[&["rule_id", "identifier"]]);
    reader.finish()?;
    let id = reader.text("rule_id").ok_or(ApiError::NoRuleId)?;
    let usage = admin.usage.of(rule_id(id)?, reader.text("identifier")).await?;
    Ok(json::respond(&WireUsage::try_from(&usage)?))
}

impl TryFrom<&Usage> for WireUsage {
    type Error = ApiError;

    fn try_from(usage: &Usage) -> Result<Self, ApiError> {
        // The default rule has no usage.
        let rule = usage.rule.rule().ok_or_else(|| ApiError::NoSuchRule("default".to_owned()))?;
        Ok(Self {
            rule_id: rule.id.to_string(),
            rule_name: rule.display_name(),
            limit: rule.spec.limit,
            window_seconds: rule.spec.window_seconds,
            algorithm: rule.spec.algorithm.name(),
            enabled: rule.spec.enabled,
            standing: usage.subject.into(),
        })
    }
}

impl From<Option<SubjectUsage>> for WireSubjectUsage {
    fn from(usage: Option<SubjectUsage>) -> Self {
        Self {
            used: usage.map(|usage| usage.used),
            remaining: usage.map(|usage| usage.remaining),
            reset_at: usage.map(|usage| usage.reset_at),
        }
    }
}

impl From<UsageError> for ApiError {
    fn from(error: UsageError) -> Self {
        match error {
            UsageError::NoSuchRule(id) => Self::NoSuchRule(id.to_string()),
            UsageError::OtherSubject(_) | UsageError::Identifier(_) => {
                Self::Invalid(vec![Detail::new("identifier", "invalid", error.to_string())])
            }
        }
    }
}
