//! Rules as they are sent and shown.

use headgate::{LeasePolicy, Timestamp};
use headgate_ratelimit::{Draft, RateLimitRule, RuleSpec, Selector, SelectorDraft, Warning};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::{
    lease::LeaseField,
    limit::{LimitField, WireLimitOfRule},
    selector::{JsonField, WireWarning},
};
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
    /// Kind of subject. Required without `when` and `per`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<schemas::RuleScope>)]
    scope: Field<'a>,
    /// Subjects: an identifier, `prefix*`, or `*` for all. Required without `when` and `per`.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F{}*]*\*?$", example = "*")]
    identifier_pattern: Field<'a>,
    /// Most units a subject may take in a window. A rule over attributes may have limits by plan.
    #[serde(default)]
    #[schema(value_type = schemas::RuleLimit, required = true)]
    limit: LimitField,
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
    /// Part of the limit that a server takes in advance from Redis; default: the server's.
    #[serde(borrow, default)]
    #[schema(value_type = Option<schemas::Lease>)]
    lease: LeaseField<'a>,
    /// A disabled rule admits everything and counts nothing; default true.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    enabled: Field<'a>,
    /// Conditions by attribute, for a rule over attributes: such a rule has a name and no scope.
    #[serde(default)]
    #[schema(value_type = Option<Object>, example = json!({"path": "/v1/exports/*", "method": ["POST", "PUT"]}))]
    when: JsonField,
    /// Attributes that a rule over attributes counts by, at most 8.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 8, example = json!(["tenant", "user"]))]
    per: JsonField,
    /// Priority of a rule over attributes; default 0, which other rules have.
    #[serde(borrow, default)]
    #[schema(value_type = Option<i32>, minimum = -1000, maximum = 1000)]
    priority: Field<'a>,
    /// Where this rule matches, rules of a lower priority do not apply; default false.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    stops: Field<'a>,
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
    /// What the rule probably was not meant to do; only when it is created or updated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<WireWarning>,
}

/// A rule's settings.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleSpec)]
pub(in crate::rest) struct WireSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    name: Option<String>,
    #[schema(value_type = schemas::RuleScope)]
    scope: &'static str,
    /// The name, if the rule is over attributes.
    identifier_pattern: String,
    #[schema(value_type = schemas::RuleLimit)]
    limit: WireLimitOfRule,
    window_seconds: u32,
    #[schema(value_type = schemas::Algorithm)]
    algorithm: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uint32")]
    burst: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schemas::FailMode, required = false)]
    fail_mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = schemas::Lease, required = false)]
    lease: Option<WireLease>,
    enabled: bool,
    /// Conditions by attribute; only rules over attributes have this and the next three.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    when: Option<Json>,
    /// Attributes that it counts by.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    per: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    priority: Option<i32>,
    /// Where it matches, rules of a lower priority do not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stops: Option<bool>,
}

/// Part of a limit that a server takes in advance.
#[derive(Serialize)]
pub(in crate::rest) struct WireLease {
    share_percent: u8,
    hold_ms: u16,
}

impl<'a> WireObject<'a> for WireDraft<'a> {
    fn problems(self) -> Vec<Detail> {
        let wrong = Draft::from(self).validate(None).err().unwrap_or_default();
        wrong.into_iter().map(Detail::from).collect()
    }
}

impl From<WireDraft<'_>> for Draft {
    fn from(wire: WireDraft<'_>) -> Self {
        let (limit, limits) = wire.limit.into_inputs();
        Self {
            name: wire.name.into_text(),
            scope: wire.scope.into_text(),
            identifier_pattern: wire.identifier_pattern.into_text(),
            limit,
            window_seconds: wire.window_seconds.into_number(),
            algorithm: wire.algorithm.into_text(),
            burst: wire.burst.into_number(),
            fail_mode: wire.fail_mode.into_text(),
            lease: wire.lease.into_draft(),
            enabled: wire.enabled.into_bool(),
            selector: SelectorDraft {
                when: wire.when.into_object(),
                per: wire.per.into_texts(),
                priority: wire.priority.into_number(),
                stops: wire.stops.into_bool(),
                limits,
            },
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
            warnings: Vec::new(),
        }
    }
}

impl WireRule {
    /// Adds warnings.
    pub(super) fn with_warnings(mut self, warnings: Vec<Warning>) -> Self {
        self.warnings = warnings.into_iter().map(WireWarning::from).collect();
        self
    }
}

impl From<&RuleSpec> for WireSpec {
    fn from(spec: &RuleSpec) -> Self {
        let selector = spec.selector.as_deref();
        Self {
            name: spec.name.clone(),
            scope: spec.scope.name(),
            identifier_pattern: spec.identifier_pattern.to_string(),
            limit: WireLimitOfRule::from(spec),
            window_seconds: spec.window_seconds,
            algorithm: spec.algorithm.name(),
            burst: spec.burst,
            fail_mode: spec.fail_mode.map(headgate::FailMode::name),
            lease: spec.lease.map(WireLease::from),
            enabled: spec.enabled,
            when: selector.map(Selector::when_json),
            per: selector.map(|selector| selector.per().map(str::to_owned).collect()),
            priority: selector.map(Selector::priority),
            stops: selector.map(Selector::stops),
        }
    }
}

impl From<LeasePolicy> for WireLease {
    fn from(policy: LeasePolicy) -> Self {
        Self { share_percent: policy.share_percent(), hold_ms: policy.hold_ms() }
    }
}
