//! `/api/v1/ratelimit/explain`: the rules that match a subject, or a check with attributes.

pub(super) mod attributes;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::{Grant, Timestamp};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{Catalog, RateLimitRule, usecase::explain::ExplainedRule};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    caller::Caller,
    check::{scope, subject},
    error::ApiError,
    json,
    overrides::WireOverride,
    query::Query,
    rules::WireLease,
    schemas::{self, Failing, Invalid, Protected},
    time,
    usage::WireSubjectUsage,
};

/// Every rule that matches a subject, the closest first.
#[derive(Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(super) struct WireExplanation<'a> {
    #[schema(value_type = schemas::Scope)]
    scope: &'static str,
    identifier: &'a str,
    /// Revision of the rules.
    revision: i64,
    rules: Vec<WireExplained>,
}

/// A rule that matches.
#[derive(Serialize, ToSchema)]
#[schema(as = Explained)]
pub(super) struct WireExplained {
    /// The default rule has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    rule_id: Option<String>,
    rule_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    identifier_pattern: Option<String>,
    limit: u64,
    window_seconds: u32,
    #[schema(value_type = schemas::Algorithm)]
    algorithm: &'static str,
    #[schema(value_type = schemas::FailMode)]
    fail_mode: &'static str,
    enabled: bool,
    #[serde(rename = "match")]
    #[schema(value_type = schemas::Match)]
    level: &'static str,
    /// True if it applies to the request.
    applies: bool,
    why: &'static str,
    /// Reason for the limit, if it is not the only one of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit_why: Option<String>,
    /// The override whose limit this is.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    overridden: Option<WireOverride>,
    #[serde(flatten)]
    standing: WireSubjectUsage,
    /// Lease of the rule; left out if nothing is leased.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schemas::Lease, required = false)]
    lease: Option<WireLease>,
    /// Units that this server took in advance; left out if it holds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held: Option<WireHeld>,
}

/// Units that a server took in advance and may hand out without asking Redis.
#[derive(Serialize, ToSchema)]
#[schema(as = HeldUnits)]
pub(super) struct WireHeld {
    units: u64,
    /// Time from which it may not.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    until: Timestamp,
}

/// Shows the rules that match a subject, and the reason for each.
#[utoipa::path(
    get,
    path = "/api/v1/ratelimit/explain",
    tag = "subjects",
    params(
        ("scope" = schemas::Scope, Query, description = "Kind of subject"),
        ("identifier" = String, Query, min_length = 1, max_length = 512, pattern = r"^[^\x00-\x1F\x7F{}]+$", description = "Identifier of the subject"),
    ),
    security(("token" = [])),
    responses((status = 200, description = "The rules", body = WireExplanation<'_>), Invalid, Protected, Failing),
)]
pub(super) async fn explain(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    query: Query,
) -> Result<Response, ApiError> {
    caller.may(Action::Explain).await?;
    let reader = query.reader(&[&["scope", "identifier"]]);
    let fields = (scope(reader.text("scope")), subject(reader.text("identifier")));
    let (scope, subject) = match fields {
        (Ok(scope), Ok(subject)) => (scope, subject),
        (scope, subject) => {
            let mut wrong =
                reader.finish().map_err(ApiError::into_details).err().unwrap_or_default();
            wrong.extend(scope.err().into_iter().chain(subject.err()));
            return Err(ApiError::Invalid(wrong));
        }
    };
    reader.finish()?;

    let explanation = admin.explain.explain(scope, subject).await;
    Ok(json::respond(&WireExplanation {
        scope: scope.name(),
        identifier: subject.subject(),
        revision: explanation.revision.0,
        rules: explanation
            .rules
            .iter()
            .map(|explained| WireExplained::new(explained, &admin.catalog))
            .collect(),
    }))
}

impl WireExplained {
    fn new(explained: &ExplainedRule, catalog: &Catalog) -> Self {
        let compiled = &explained.rule;
        let overridden = explained.limit.as_ref().and_then(|limit| limit.overridden.as_ref());
        let rule = compiled.rule();
        Self {
            rule_id: rule.map(|rule| rule.id.to_string()),
            rule_name: rule.map_or_else(|| "default".to_owned(), RateLimitRule::display_name),
            identifier_pattern: rule.map(|rule| rule.spec.identifier_pattern.to_string()),
            limit: compiled.units(),
            window_seconds: compiled.window_seconds(),
            algorithm: compiled.limit().algorithm().name(),
            fail_mode: compiled.fail_mode().name(),
            enabled: compiled.is_enabled(),
            level: explained.level.name(),
            applies: explained.applies,
            why: explained.why,
            limit_why: explained.limit.as_ref().map(|limit| limit.why.clone()),
            overridden: overridden.map(|one| WireOverride::new(one, catalog)),
            standing: explained.usage.into(),
            lease: Some(compiled.lease()).filter(|lease| !lease.is_off()).map(WireLease::from),
            held: explained.held.map(|Grant { units, until }| WireHeld { units, until }),
        }
    }
}
