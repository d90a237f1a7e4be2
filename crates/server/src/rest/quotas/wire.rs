//! Quota policies and usage as they are sent and shown.

use headgate::Timestamp;
use headgate_quota::{Draft, QuotaPolicy, QuotaUsage};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::rest::{error::Detail, field::Field, json_body::WireObject, schemas, time};

/// A quota policy to create or update. Optional fields that an update leaves out stay as they are; null resets them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = QuotaDraft)]
pub(in crate::rest) struct WirePolicyDraft<'a> {
    /// A name for people.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\x00-\x1F\x7F-\x9F\s][^\x00-\x1F\x7F-\x9F]*$", example = "Standard plan")]
    name: Field<'a>,
    /// Kind of subject.
    #[serde(borrow, default)]
    #[schema(value_type = schemas::SubjectType, required = true)]
    subject_type: Field<'a>,
    /// Id of the subject.
    #[serde(borrow, default)]
    #[schema(value_type = String, required = true, min_length = 1, max_length = 255, pattern = r"^[^\x00-\x1F\x7F-\x9F]*[^\x00-\x1F\x7F-\x9F\s][^\x00-\x1F\x7F-\x9F]*$", example = "tenant-abc")]
    subject_id: Field<'a>,
    /// Maximum number of units per period.
    #[serde(borrow, default)]
    #[schema(value_type = u64, required = true, minimum = 1, maximum = 9_007_199_254_740_992i64, example = 10_000)]
    limit: Field<'a>,
    /// Length of a period.
    #[serde(borrow, default)]
    #[schema(value_type = schemas::Period, required = true)]
    period: Field<'a>,
    /// IANA name of the time zone; default UTC.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64, example = "Asia/Tokyo")]
    time_zone: Field<'a>,
    /// A disabled policy admits everything and counts nothing; default true.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    enabled: Field<'a>,
    /// Percentage of the limit at which an alert is raised; default none.
    #[serde(borrow, default)]
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 100, example = 80)]
    alert_threshold_percent: Field<'a>,
}

/// A quota policy.
#[derive(Serialize, ToSchema)]
#[schema(as = Quota)]
pub(in crate::rest) struct WirePolicy {
    id: String,
    name: String,
    #[schema(value_type = schemas::SubjectType)]
    subject_type: &'static str,
    subject_id: String,
    limit: u64,
    #[schema(value_type = schemas::Period)]
    period: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    time_zone: Option<String>,
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alert_threshold_percent: Option<u8>,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// Usage of a quota.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaUsage)]
pub(in crate::rest) struct WireQuotaUsage {
    quota_id: String,
    #[schema(value_type = schemas::SubjectType)]
    subject_type: &'static str,
    subject_id: String,
    #[schema(value_type = schemas::Period)]
    period: &'static str,
    limit: u64,
    /// Units used. In the answer to a check, with those that are reserved.
    used: u64,
    /// Units that pending reservations hold besides; only if there are any.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    reserved: u64,
    remaining: u64,
    /// Used units in percent of the limit, with two decimals, rounded down.
    #[schema(example = 75.23)]
    usage_percent: f64,
    /// True if everything is used.
    exceeded: bool,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    period_start: Timestamp,
    /// The last millisecond of the period.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    period_end: Timestamp,
    /// Start of the next period, with the whole quota.
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    reset_at: Timestamp,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    retrieved_at: Timestamp,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> WireObject<'a> for WirePolicyDraft<'a> {
    fn problems(self) -> Vec<Detail> {
        let wrong = Draft::from(self).validate(None).err().unwrap_or_default();
        wrong.into_iter().map(Detail::from).collect()
    }
}

impl From<WirePolicyDraft<'_>> for Draft {
    fn from(wire: WirePolicyDraft<'_>) -> Self {
        Self {
            name: wire.name.into_text(),
            subject_type: wire.subject_type.into_text(),
            subject_id: wire.subject_id.into_text(),
            limit: wire.limit.into_number(),
            period: wire.period.into_text(),
            time_zone: wire.time_zone.into_text(),
            enabled: wire.enabled.into_bool(),
            alert_threshold_percent: wire.alert_threshold_percent.into_number(),
        }
    }
}

impl From<&QuotaPolicy> for WirePolicy {
    fn from(policy: &QuotaPolicy) -> Self {
        let spec = &policy.spec;
        Self {
            id: policy.id.to_string(),
            name: spec.name.clone(),
            subject_type: spec.subject.kind.name(),
            subject_id: spec.subject.id.clone(),
            limit: spec.limit,
            period: spec.period.name(),
            time_zone: spec.time_zone.clone(),
            enabled: spec.enabled,
            alert_threshold_percent: spec.alert_threshold_percent,
            created_at: policy.created_at,
            updated_at: policy.updated_at,
        }
    }
}

impl From<&QuotaUsage> for WireQuotaUsage {
    fn from(usage: &QuotaUsage) -> Self {
        Self {
            quota_id: usage.quota_id.to_string(),
            subject_type: usage.subject.kind.name(),
            subject_id: usage.subject.id.clone(),
            period: usage.period.name(),
            limit: usage.limit,
            used: usage.used,
            reserved: usage.reserved,
            remaining: usage.remaining,
            usage_percent: usage.usage_percent,
            exceeded: usage.exceeded,
            period_start: usage.span.start,
            period_end: usage.span.last(),
            reset_at: usage.span.end,
            retrieved_at: usage.retrieved_at,
        }
    }
}
