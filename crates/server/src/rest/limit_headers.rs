//! What every answer about a limit says in its headers: `X-RateLimit-*`, `Retry-After`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers-11.

use std::io::{self, Write};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};
use headgate::Decision;
use headgate_quota::QuotaUsage;
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm, RuleId};

use crate::quotas::seconds_until;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// As many as an answer has beside its content's type: growing would move them.
const HEADERS: usize = 9;

/// What a decision was made by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    name: Name,
    window_seconds: u64,
}

/// What a policy is called.
#[derive(Clone, Copy, Debug)]
enum Name {
    Rule(RuleId),
    Default,
    Algorithm(KeyedAlgorithm),
}

/// Writes how the subject stands after `decision`.
pub(super) fn write(headers: &mut HeaderMap, decision: &Decision, policy: Policy) {
    headers.reserve(HEADERS);
    let mut digits = itoa::Buffer::new();
    put(headers, LIMIT, digits.format(decision.limit).as_bytes());
    put(headers, REMAINING, digits.format(decision.remaining).as_bytes());
    put(headers, RESET, digits.format(decision.reset_at_secs()).as_bytes());
    let Policy { name, window_seconds: window } = policy;
    put_field(headers, IETF_POLICY, name, [(";q=", decision.limit), (";w=", window)]);
    let reset = decision.reset_after_secs();
    put_field(headers, IETF, name, [(";r=", decision.remaining), (";t=", reset)]);
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

/// A structured field with one item: the policy's name, and parameters.
fn put_field(
    headers: &mut HeaderMap,
    header: HeaderName,
    policy: Name,
    parameters: [(&str, u64); 2],
) {
    // Quotes, a UUID, two numbers of up to 20 digits, two parameters' names.
    let mut text = [0; 96];
    let unused = write_field(&mut text, policy, parameters).unwrap_or(text.len());
    put(headers, header, &text[..text.len() - unused]);
}

/// Writes a structured field; says how much room is left.
fn write_field(
    mut text: &mut [u8],
    policy: Name,
    parameters: [(&str, u64); 2],
) -> io::Result<usize> {
    match policy {
        Name::Rule(id) => write!(text, "\"{id}\"")?,
        Name::Default => text.write_all(b"\"default\"")?,
        Name::Algorithm(algorithm) => write!(text, "\"{}\"", algorithm.engine().name())?,
    }
    // Numbers are written without the formatter, which costs more than the rest together.
    let mut digits = itoa::Buffer::new();
    for (name, value) in parameters {
        text.write_all(name.as_bytes())?;
        text.write_all(digits.format(value).as_bytes())?;
    }
    Ok(text.len())
}

// === impl Policy ===

impl Policy {
    /// The limit of an algorithm, over so many seconds.
    pub(super) const fn of_algorithm(algorithm: KeyedAlgorithm, window_seconds: u64) -> Self {
        Self { name: Name::Algorithm(algorithm), window_seconds }
    }
}

impl From<&CompiledRule> for Policy {
    fn from(rule: &CompiledRule) -> Self {
        let name = rule.id().map_or(Name::Default, Name::Rule);
        Self { name, window_seconds: rule.window_seconds().into() }
    }
}
