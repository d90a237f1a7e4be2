//! Limit headers: `X-RateLimit-*`, and the fields of draft-ietf-httpapi-ratelimit-headers-11, where
//! `r` is the remaining count and `t` the seconds until there is more.

use std::io::Write as _;

use headgate::Decision;
use http::{HeaderMap, HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Returns `true` if an inner layer has written limit headers.
pub(super) fn are_written(headers: &HeaderMap) -> bool {
    headers.contains_key(IETF)
}

/// State of a client under the limit of a class.
pub(super) struct LimitStatus<'a> {
    pub(super) class: &'a str,
    /// Window of the limit; 0 if it is not a number of seconds.
    pub(super) window_secs: u64,
    /// Seconds until more becomes available; `None` if the full count already is.
    pub(super) more_secs: Option<u64>,
    pub(super) decision: &'a Decision,
}

pub(super) fn write(headers: &mut HeaderMap, status: &LimitStatus<'_>) {
    let LimitStatus { class, window_secs, more_secs, decision } = *status;
    headers.reserve(5);
    put(headers, LIMIT, decision.limit);
    put(headers, REMAINING, decision.remaining);
    put(headers, RESET, decision.reset_at_secs());
    let window = (window_secs > 0).then_some(window_secs);
    put_field(headers, IETF_POLICY, class, (";q=", decision.limit), (";w=", window));
    put_field(headers, IETF, class, (";r=", decision.remaining), (";t=", more_secs));
}

/// Writes a number. `HeaderValue::from(u64)` would allocate twice.
pub(super) fn put(headers: &mut HeaderMap, header: HeaderName, number: u64) {
    let mut digits = itoa::Buffer::new();
    if let Ok(value) = HeaderValue::from_bytes(digits.format(number).as_bytes()) {
        headers.insert(header, value);
    }
}

/// Writes a structured field with one item: the class, and parameters.
fn put_field(
    headers: &mut HeaderMap,
    header: HeaderName,
    class: &str,
    (name, value): (&str, u64),
    (optional, optional_value): (&str, Option<u64>),
) {
    // Quotes, a name of at most 16 bytes, two numbers of up to 20 digits, two parameter names.
    let mut text = Vec::with_capacity(64);
    let _ = write!(text, "\"{class}\"");
    let mut digits = itoa::Buffer::new();
    for (name, value) in
        [(name, value)].into_iter().chain(optional_value.map(|value| (optional, value)))
    {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(digits.format(value).as_bytes());
    }
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(header, value);
    }
}
