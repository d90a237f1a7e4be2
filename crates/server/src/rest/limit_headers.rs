//! What every answer about a limit says in its headers: `X-RateLimit-*`, `Retry-After`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers-11.

use std::{fmt, io::Write};

use axum::{
    body::Bytes,
    http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER},
};
use headgate::Decision;
use headgate_ratelimit::{CompiledRule, KeyedAlgorithm, RuleId};

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
    headers.insert(LIMIT, HeaderValue::from(decision.limit));
    headers.insert(REMAINING, HeaderValue::from(decision.remaining));
    headers.insert(RESET, HeaderValue::from(decision.reset_at_secs()));
    let Policy { name, window_seconds: window } = policy;
    let (limit, left, reset) = (decision.limit, decision.remaining, decision.reset_after_secs());
    headers.extend(field(IETF_POLICY, name, format_args!(";q={limit};w={window}")));
    headers.extend(field(IETF, name, format_args!(";r={left};t={reset}")));
}

/// Says when it is worth asking again, if not now.
pub(super) fn write_retry(headers: &mut HeaderMap, decision: &Decision) {
    if !decision.allowed {
        headers.insert(RETRY_AFTER, HeaderValue::from(decision.retry_after_secs()));
    }
}

/// A structured field with one item: the policy's name, and parameters.
fn field(
    header: HeaderName,
    policy: Name,
    parameters: fmt::Arguments<'_>,
) -> Option<(HeaderName, HeaderValue)> {
    const USUAL_BYTES: usize = 64;
    let mut text = Vec::with_capacity(USUAL_BYTES);
    let written = match policy {
        Name::Rule(id) => write!(text, "\"{id}\"{parameters}"),
        Name::Default => write!(text, "\"default\"{parameters}"),
        Name::Algorithm(algorithm) => write!(text, "\"{}\"{parameters}", algorithm.engine().name()),
    };
    written.ok()?;
    Some((header, HeaderValue::from_maybe_shared(Bytes::from(text)).ok()?))
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
