//! What every answer about a limit says in its headers: `X-RateLimit-*`, `Retry-After`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers-11.

use super::text::Text;
use crate::quotas::seconds_until;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};
use headgate::Decision;
use headgate_quota::QuotaUsage;
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// As many as an answer has: growing would move them.
pub(super) const HEADERS: usize = 10;

/// What a decision was made by.
#[derive(Clone, Copy, Debug)]
pub(super) enum Policy<'a> {
    Rule(&'a CompiledRule),
    /// A limit by key, over so many seconds.
    Algorithm(KeyedAlgorithm, u64),
}

/// No UUID with two numbers and their names is longer.
type Item = Text<96>;

/// Writes how the subject stands after `decision`.
pub(super) fn write(headers: &mut HeaderMap, decision: &Decision, policy: Policy<'_>) {
    let mut digits = itoa::Buffer::new();
    put(headers, LIMIT, digits.format(decision.limit).as_bytes());
    put(headers, REMAINING, digits.format(decision.remaining).as_bytes());
    put(headers, RESET, digits.format(decision.reset_at_secs()).as_bytes());
    match policy {
        // Where a store's failure is answered for, a share of the limit is in force.
        Policy::Rule(rule) if decision.limit == rule.limit().capacity() => {
            put(headers, IETF_POLICY, rule.policy().as_bytes());
        }
        policy => {
            let parameters = [(";q=", decision.limit), (";w=", policy.window_seconds())];
            put(headers, IETF_POLICY, policy.item(parameters).as_bytes());
        }
    }
    let parameters = [(";r=", decision.remaining), (";t=", decision.reset_after_secs())];
    put(headers, IETF, policy.item(parameters).as_bytes());
}

/// Writes how a quota stands.
pub(super) fn write_quota(headers: &mut HeaderMap, usage: &QuotaUsage) {
    let QuotaUsage { quota_id, limit, remaining, span, .. } = usage;
    headers.insert(LIMIT, HeaderValue::from(*limit));
    headers.insert(REMAINING, HeaderValue::from(*remaining));
    headers.insert(RESET, HeaderValue::from(span.end.as_secs_ceil()));
    let window = span.end.since(span.start) / 1_000_000;
    let left = seconds_until(span.end, usage.retrieved_at);
    let fields = [
        (IETF_POLICY, format!("\"{quota_id}\";q={limit};w={window}")),
        (IETF, format!("\"{quota_id}\";r={remaining};t={left}")),
    ];
    // Ids have no character that a header cannot have.
    let value = |(name, text)| Some((name, HeaderValue::try_from(text).ok()?));
    headers.extend(fields.into_iter().filter_map(value));
}

/// Says when it is worth asking again, if not now.
pub(super) fn write_retry(headers: &mut HeaderMap, decision: &Decision) {
    if !decision.allowed {
        headers.insert(RETRY_AFTER, HeaderValue::from(decision.retry_after_secs()));
    }
}

/// A header of text that was written here. The library's own way from a number allocates twice.
fn put(headers: &mut HeaderMap, header: HeaderName, text: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(text) {
        headers.insert(header, value);
    }
}

// === impl Policy ===

impl Policy<'_> {
    fn window_seconds(self) -> u64 {
        match self {
            Self::Rule(rule) => rule.window_seconds().into(),
            Self::Algorithm(_, window_seconds) => window_seconds,
        }
    }

    /// A structured field with one item: the policy's name, and parameters.
    fn item(self, parameters: [(&str, u64); 2]) -> Item {
        let mut text = Item::new();
        match self {
            Self::Rule(rule) => text.push(rule.policy_name()),
            Self::Algorithm(algorithm, _) => {
                text.push("\"");
                text.push(algorithm.engine().name());
                text.push("\"");
            }
        }
        for (name, value) in parameters {
            text.push(name);
            text.push_number(value);
        }
        text
    }
}
