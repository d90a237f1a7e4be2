//! Converts Envoy's messages.

use headgate_envoy::{
    Descriptor, DescriptorStatus, EnvoyRequest, EnvoyVerdict, Hits, MAX_DESCRIPTORS, MAX_ENTRIES,
    Rate, ResponseHeaders, Unit,
};

use super::headers::response_headers;
use crate::{
    error::{CallError, Violation},
    proto::envoy::{
        extensions::common::ratelimit::v3::{
            RateLimitDescriptor, rate_limit_descriptor::RateLimitOverride,
        },
        service::ratelimit::v3::{
            RateLimitRequest, RateLimitResponse,
            rate_limit_response::{self, Code, RateLimit, rate_limit},
        },
        r#type::v3::RateLimitUnit,
    },
};

// === request ===

/// Returns the request, or everything that is invalid in it.
pub(super) fn request(wire: &RateLimitRequest) -> Result<EnvoyRequest<'_>, CallError> {
    let mut violations = Vec::new();
    if wire.domain.is_empty() {
        violations.push(Violation::new("domain", "domain is required"));
    }
    let is_valid = |descriptor: &RateLimitDescriptor| {
        (1..=MAX_ENTRIES).contains(&descriptor.entries.len())
            && descriptor.entries.iter().all(|entry| !entry.key.is_empty())
    };
    match wire.descriptors.len() {
        0 => violations.push(Violation::new("descriptors", "at least one descriptor is required")),
        n if n > MAX_DESCRIPTORS => {
            let message = format!("at most {MAX_DESCRIPTORS} descriptors are allowed, got {n}");
            violations.push(Violation::new("descriptors", message));
        }
        _ if !wire.descriptors.iter().all(is_valid) => {
            let message =
                format!("each descriptor needs 1 to {MAX_ENTRIES} entries, and each entry a key");
            violations.push(Violation::new("descriptors", message));
        }
        _ => {}
    }
    if !violations.is_empty() {
        return Err(CallError::Invalid(violations));
    }
    let descriptors = wire.descriptors.iter().map(|it| descriptor(it, wire.hits_addend)).collect();
    Ok(EnvoyRequest { domain: &wire.domain, descriptors })
}

fn descriptor(wire: &RateLimitDescriptor, hits_addend: u32) -> Descriptor<'_> {
    let hits = match wire.hits_addend {
        Some(0) => Hits::Peek,
        own => {
            let units = own.unwrap_or_else(|| u64::from(hits_addend.max(1)));
            if wire.is_negative_hits { Hits::Refund(units) } else { Hits::Take(units) }
        }
    };
    Descriptor {
        entries: wire.entries.iter().map(|it| (it.key.as_str(), it.value.as_str())).collect(),
        hits,
        limit_override: wire.limit.as_ref().and_then(rate),
    }
}

fn rate(wire: &RateLimitOverride) -> Option<Rate> {
    let unit = match RateLimitUnit::try_from(wire.unit).ok()? {
        RateLimitUnit::Unknown => return None,
        RateLimitUnit::Second => Unit::Second,
        RateLimitUnit::Minute => Unit::Minute,
        RateLimitUnit::Hour => Unit::Hour,
        RateLimitUnit::Day => Unit::Day,
        RateLimitUnit::Month => Unit::Month,
        RateLimitUnit::Year => Unit::Year,
    };
    let multiplier = wire.unit_multiplier.unwrap_or(1).max(1);
    Some(Rate { requests: wire.requests_per_unit, unit, multiplier })
}

// === response ===

pub(super) fn response(verdict: &EnvoyVerdict, headers: ResponseHeaders) -> RateLimitResponse {
    RateLimitResponse {
        overall_code: code(verdict.over_limit).into(),
        statuses: verdict.statuses.iter().map(status).collect(),
        response_headers_to_add: response_headers(verdict, headers),
        ..RateLimitResponse::default()
    }
}

const fn code(over_limit: bool) -> Code {
    if over_limit { Code::OverLimit } else { Code::Ok }
}

fn status(status: &DescriptorStatus) -> rate_limit_response::DescriptorStatus {
    let limit = status.rule.as_ref().and_then(|rule| {
        let rate = rule.rate()?;
        Some(RateLimit {
            name: rule.name().to_owned(),
            requests_per_unit: rate.requests,
            unit: unit(rate.unit).into(),
            unit_multiplier: (rate.multiplier > 1).then_some(rate.multiplier),
        })
    });
    rate_limit_response::DescriptorStatus {
        code: code(status.over_limit).into(),
        duration_until_reset: limit.is_some().then(|| whole_seconds(status.reset_after_secs())),
        current_limit: limit,
        limit_remaining: u32::try_from(status.remaining).unwrap_or(u32::MAX),
    }
}

const fn unit(unit: Unit) -> rate_limit::Unit {
    match unit {
        Unit::Second => rate_limit::Unit::Second,
        Unit::Minute => rate_limit::Unit::Minute,
        Unit::Hour => rate_limit::Unit::Hour,
        Unit::Day => rate_limit::Unit::Day,
        Unit::Week => rate_limit::Unit::Week,
        Unit::Month => rate_limit::Unit::Month,
        Unit::Year => rate_limit::Unit::Year,
    }
}

/// Envoy's headers show whole seconds, and cut off fractions.
fn whole_seconds(seconds: u64) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}
