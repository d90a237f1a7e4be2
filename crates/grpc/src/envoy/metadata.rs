//! The metadata of a response: the request, the metadata of limits that have room, and the limits
//! that deny.

use headgate_envoy::{DescriptorStatus, EnvoyVerdict, Metadata};
use prost_types::{ListValue, Struct, Value, value::Kind};

use crate::proto::envoy::{
    extensions::common::ratelimit::v3::{
        RateLimitDescriptor, rate_limit_descriptor::RateLimitOverride,
    },
    service::ratelimit::v3::RateLimitRequest,
    r#type::v3::RateLimitUnit,
};

/// Returns the fields that envoyproxy/ratelimit sends, `denied` and `leased`.
pub(super) fn of(request: &RateLimitRequest, verdict: &EnvoyVerdict) -> Struct {
    let descriptors = request.descriptors.iter().map(descriptor).collect();
    let mut fields = vec![("domain", text(&request.domain)), ("descriptors", list(descriptors))];
    if request.hits_addend != 0 {
        fields.push(("hitsAddend", number(request.hits_addend.into())));
    }
    let metadata = merged(verdict);
    if !metadata.is_empty() {
        fields.push(("metadata", of_kind(Kind::StructValue(metadata.0))));
    }
    let denied: Vec<Value> = verdict.all().filter_map(denial).collect();
    if !denied.is_empty() {
        fields.push(("denied", list(denied)));
    }
    if verdict.is_leased() {
        fields.push(("leased", of_kind(Kind::BoolValue(true))));
    }
    section(fields)
}

/// Merges the metadata of the limits that have room; the first one wins.
fn merged(verdict: &EnvoyVerdict) -> Metadata {
    let mut all = Metadata::default();
    let passed = verdict.all().map(|(_, status)| status).filter(|status| !status.over_limit);
    let rules = passed.filter_map(|status| status.rule.as_ref().filter(|it| it.rate().is_some()));
    for metadata in rules.filter_map(|rule| rule.metadata()) {
        all.merge(metadata);
    }
    all
}

/// Returns the descriptor's index and its rule, if it is denied.
fn denial((index, status): (usize, &DescriptorStatus)) -> Option<Value> {
    let rule = status.rule.as_ref().filter(|_| status.over_limit)?;
    let mut fields = vec![("descriptor", number(index as f64)), ("rule", text(rule.label()))];
    if !rule.name().is_empty() {
        fields.push(("name", text(rule.name())));
    }
    Some(of_kind(Kind::StructValue(section(fields))))
}

fn descriptor(wire: &RateLimitDescriptor) -> Value {
    let entries = wire.entries.iter().map(|entry| text(&format!("{}={}", entry.key, entry.value)));
    let mut fields = vec![("entries", list(entries.collect()))];
    if let Some(limit) = &wire.limit {
        fields.push(("limit", text(&override_text(limit))));
    }
    if let Some(hits) = wire.hits_addend {
        fields.push(("hitsAddend", number(hits as f64)));
    }
    of_kind(Kind::StructValue(section(fields)))
}

fn override_text(limit: &RateLimitOverride) -> String {
    let unit = RateLimitUnit::try_from(limit.unit).map_or("UNKNOWN", |unit| unit.as_str_name());
    format!("requests_per_unit:{} unit:{unit}", limit.requests_per_unit)
}

fn section(fields: Vec<(&str, Value)>) -> Struct {
    Struct { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

fn list(values: Vec<Value>) -> Value {
    of_kind(Kind::ListValue(ListValue { values }))
}

fn text(text: &str) -> Value {
    of_kind(Kind::StringValue(text.to_owned()))
}

const fn number(number: f64) -> Value {
    of_kind(Kind::NumberValue(number))
}

const fn of_kind(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}
