//! Rules as they are sent and shown.

use headgate::Timestamp;
use headgate_ratelimit::{Draft, RateLimitRule, RuleSpec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rest::{error::Detail, field::Field, json_body::WireObject, schemas, time};

/// A rule to create or update. Optional fields that an update leaves out stay as they are; null resets them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = RuleDraft)]
pub(in crate::rest) struct WireDraft<'a> {
    /// A name for people.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    name: Field<'a>,
    /// Kind of subject.
    #[serde(borrow, default)]
    #[schema(value_type = schemas::Scope, required = true)]
    scope: Field<'a>,
    /// Subjects: an identifier, `prefix*`, or `*` for all.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F{}*]*\*?$", example = "*")]
    identifier_pattern: Field<'a>,
    /// Most units a subject may take in a window.
    #[serde(borrow, default)]
    #[schema(value_type = u32, format = "uint32", required = true, minimum = 1, maximum = 4_294_967_295i64, example = 100)]
    limit: Field<'a>,
    /// Window in seconds. At most 8 rules have the same scope and pattern: all of them must admit.
    #[serde(borrow, default)]
    #[schema(value_type = u32, required = true, minimum = 1, maximum = 31_622_400, example = 60)]
    window_seconds: Field<'a>,
    /// Algorithm; default `token_bucket`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<schemas::Algorithm>)]
    algorithm: Field<'a>,
    /// Most units at once, if that is not the limit; for buckets only.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u32>, format = "uint32", minimum = 1, maximum = 4_294_967_295i64)]
    burst: Field<'a>,
    /// Decides while the store cannot; default: the server's.
    #[serde(borrow, default)]
    #[schema(value_type = Option<schemas::FailMode>)]
    fail_mode: Field<'a>,
    /// A disabled rule admits everything and counts nothing; default true.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    enabled: Field<'a>,
}

/// A rule.
#[derive(Serialize, ToSchema)]
#[schema(as = Rule)]
pub(in crate::rest) struct WireRule {
    #[schema(format = "uuid")]
    id: String,
    #[serde(flatten)]
    spec: WireSpec,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// A rule's settings.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleSpec)]
pub(in crate::rest) struct WireSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(value_type = schemas::Scope)]
    scope: &'static str,
    identifier_pattern: String,
    #[schema(format = "uint32")]
    limit: u32,
    window_seconds: u32,
    #[schema(value_type = schemas::Algorithm)]
    algorithm: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uint32")]
    burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schemas::FailMode, required = false)]
    fail_mode: Option<&'static str>,
    enabled: bool,
}

impl<'a> WireObject<'a> for WireDraft<'a> {
    fn problems(self) -> Vec<Detail> {
        let wrong = Draft::from(self).validate(None).err().unwrap_or_default();
        wrong.into_iter().map(Detail::from).collect()
    }
}

impl From<WireDraft<'_>> for Draft {
    fn from(wire: WireDraft<'_>) -> Self {
        Self {
            name: wire.name.into_text(),
            scope: wire.scope.into_text(),
            identifier_pattern: wire.identifier_pattern.into_text(),
            limit: wire.limit.into_number(),
            window_seconds: wire.window_seconds.into_number(),
            algorithm: wire.algorithm.into_text(),
            burst: wire.burst.into_number(),
            fail_mode: wire.fail_mode.into_text(),
            enabled: wire.enabled.into_bool(),
        }
    }
}

impl From<&RateLimitRule> for WireRule {
    fn from(rule: &RateLimitRule) -> Self {
        Self {
            id: rule.id.to_string(),
            spec: WireSpec::from(&rule.spec),
            created_at: rule.created_at,
            updated_at: rule.updated_at,
        }
    }
}

impl From<&RuleSpec> for WireSpec {
    fn from(spec: &RuleSpec) -> Self {
        Self {
            name: spec.name.clone(),
            scope: spec.scope.name(),
            identifier_pattern: spec.identifier_pattern.to_string(),
            limit: spec.limit,
            window_seconds: spec.window_seconds,
            algorithm: spec.algorithm.name(),
            burst: spec.burst,
            fail_mode: spec.fail_mode.map(headgate::FailMode::name),
            enabled: spec.enabled,
        }
    }
}
