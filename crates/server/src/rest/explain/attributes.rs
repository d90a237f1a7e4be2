//! `POST /api/v1/ratelimit/explain`: the rules that apply to a check with attributes.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::RuleAdmin;
use headgate_auth::Action;
use headgate_ratelimit::{Catalog, RateLimitRule, usecase::ExplainedSelector};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rest::{
    caller::Caller,
    check::WireAttributes,
    error::{ApiError, Detail},
    json,
    json_body::{JsonBody, WireObject},
    overrides::WireOverride,
    schemas::{Failing, Protected, WithBody},
    usage::WireSubjectUsage,
};

/// A check to explain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = AttributesToExplain)]
pub(in crate::rest) struct WireExplain<'a> {
    /// As in a check.
    #[serde(borrow, default)]
    #[schema(value_type = Object, required = true)]
    attributes: WireAttributes<'a>,
}

/// The rules of a check with attributes.
#[derive(Serialize, ToSchema)]
#[schema(as = AttributesExplanation)]
pub(in crate::rest) struct WireAttributesExplanation {
    /// Revision of the rules.
    revision: i64,
    /// The rules that apply, then those that match and do not apply, at most 100 together; then at
    /// most 100 that come closest to matching.
    rules: Vec<WireExplainedSelector>,
    /// Number of further rules over attributes.
    others: usize,
}

/// A rule, and why it applies or not.
#[derive(Serialize, ToSchema)]
#[schema(as = ExplainedByAttributes)]
pub(in crate::rest) struct WireExplainedSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    rule_id: Option<String>,
    rule_name: String,
    limit: u64,
    window_seconds: u32,
    #[schema(value_type = crate::rest::schemas::Algorithm)]
    algorithm: &'static str,
    /// True if it applies to the check.
    applies: bool,
    why: String,
    /// Reason for the limit, if it is not the only one of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit_why: Option<String>,
    /// The override whose limit this is.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    overridden: Option<WireOverride>,
    /// What it counts: an identifier, or the values of `per`; left out if it does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    subject: Option<String>,
    #[serde(flatten)]
    standing: WireSubjectUsage,
}

/// Shows the rules that apply to a check with attributes, and why others do not.
#[utoipa::path(
    post,
    path = "/api/v1/ratelimit/explain",
    tag = "subjects",
    operation_id = "explain_attributes",
    request_body = WireExplain<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The rules", body = WireAttributesExplanation), WithBody, Protected, Failing),
)]
pub(in crate::rest) async fn explain(
    State(admin): State<Arc<RuleAdmin>>,
    caller: Caller,
    body: JsonBody,
) -> Result<Response, ApiError> {
    caller.may(Action::Explain).await?;
    let wire: WireExplain<'_> = body.parse()?;
    let attributes = wire.read().map_err(ApiError::Invalid)?.into_owned();
    let explanation = admin.explain.explain_attributes(attributes, None).await?;
    Ok(json::respond(&WireAttributesExplanation {
        revision: explanation.revision.0,
        rules: explanation
            .rules
            .iter()
            .map(|explained| WireExplainedSelector::new(explained, &admin.catalog))
            .collect(),
        others: explanation.others,
    }))
}

impl WireExplain<'_> {
    pub(in crate::rest) fn read(&self) -> Result<headgate_ratelimit::Attributes<'_>, Vec<Detail>> {
        if self.attributes.is_given() {
            return self.attributes.read();
        }
        let message = "attributes is required".to_owned();
        Err(vec![Detail::new("attributes", "required", message)])
    }
}

impl<'a> WireObject<'a> for WireExplain<'a> {
    fn problems(self) -> Vec<Detail> {
        self.read().err().unwrap_or_default()
    }
}

impl WireExplainedSelector {
    fn new(explained: &ExplainedSelector, catalog: &Catalog) -> Self {
        let compiled = &explained.rule;
        let overridden = explained.limit.as_ref().and_then(|limit| limit.overridden.as_ref());
        let rule = compiled.rule();
        Self {
            rule_id: rule.map(|rule| rule.id.to_string()),
            rule_name: rule.map_or_else(|| "default".to_owned(), RateLimitRule::display_name),
            limit: compiled.units(),
            window_seconds: compiled.window_seconds(),
            algorithm: compiled.limit().algorithm().name(),
            applies: explained.applies,
            why: explained.why.clone(),
            limit_why: explained.limit.as_ref().map(|limit| limit.why.clone()),
            overridden: overridden.map(|one| WireOverride::new(one, catalog)),
            subject: explained.subject.clone(),
            standing: explained.usage.into(),
        }
    }
}
