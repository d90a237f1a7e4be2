//! Overrides as they are sent and shown.

use headgate::Timestamp;
use headgate_ratelimit::{Catalog, Input, OverrideDraft, RateLimitRule, RuleOverride, Warning};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::rest::{
    error::Detail,
    field::Field,
    json_body::WireObject,
    rules::{JsonField, WireWarning},
    time,
};

/// An override to set. One with the rule and subject of an existing override replaces it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = OverrideDraft)]
pub(in crate::rest) struct WireOverrideDraft<'a> {
    /// The rule, which stays as it is.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, format = "uuid")]
    rule_id: Field<'a>,
    /// Attributes that a check must have, 1 to 8. The subject of a rule by scope is its identifier: `{"user": "u1"}`.
    #[serde(default)]
    #[schema(value_type = Object, required = true, example = json!({"tenant": "acme"}))]
    subject: JsonField,
    /// Most units a subject may take in a window.
    #[serde(borrow, default)]
    #[schema(value_type = u32, format = "uint32", required = true, minimum = 1, maximum = 4_294_967_295i64, example = 5000)]
    limit: Field<'a>,
    /// Time at which it ends (RFC 3339), in the future; none if left out.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    until: Field<'a>,
    /// Note for people, also in the audit log.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 500)]
    reason: Field<'a>,
}

/// Another limit for a subject of a rule.
#[derive(Serialize, ToSchema)]
#[schema(as = Override)]
pub(in crate::rest) struct WireOverride {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    rule_id: String,
    /// Name of the rule; left out if this server does not know the rule yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rule_name: Option<String>,
    /// Attributes that a check must have.
    #[schema(value_type = Object)]
    subject: Json,
    #[schema(format = "uint32")]
    limit: u32,
    /// Time at which it ends; none if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    until: Option<String>,
    /// False if it has ended.
    active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reason: Option<String>,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// What the override probably was not meant to do; only when it is set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<WireWarning>,
}

impl<'a> WireObject<'a> for WireOverrideDraft<'a> {
    fn problems(self) -> Vec<Detail> {
        let wrong = OverrideDraft::from(self).validate(None).err().unwrap_or_default();
        wrong.into_iter().map(Detail::from).collect()
    }
}

impl From<WireOverrideDraft<'_>> for OverrideDraft {
    fn from(wire: WireOverrideDraft<'_>) -> Self {
        Self {
            rule_id: wire.rule_id.into_text(),
            subject: wire.subject.into_object(),
            limit: wire.limit.into_number(),
            until: match wire.until.into_text() {
                Input::Given(text) => Input::Given(time::parse(&text)),
                Input::Missing => Input::Missing,
                Input::Null => Input::Null,
                Input::WrongType(got) => Input::WrongType(got),
            },
            reason: wire.reason.into_text(),
        }
    }
}

impl WireOverride {
    /// Shows an override, as it is now.
    pub(in crate::rest) fn new(one: &RuleOverride, catalog: &Catalog) -> Self {
        let snapshot = catalog.load();
        let rule = snapshot.rule(one.spec.rule).and_then(|rule| rule.rule());
        Self {
            id: one.id.to_string(),
            rule_id: one.spec.rule.to_string(),
            rule_name: rule.map(RateLimitRule::display_name),
            subject: one.spec.subject.to_json(),
            limit: one.spec.limit,
            until: one.spec.until.map(time::text),
            active: one.is_active(catalog.now()),
            reason: one.spec.reason.clone(),
            created_at: one.created_at,
            updated_at: one.updated_at,
            warnings: Vec::new(),
        }
    }

    /// Adds warnings.
    pub(super) fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings.into_iter().map(WireWarning::from).collect();
        self
    }
}
