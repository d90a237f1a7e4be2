//! What every answer about a limit says in its headers: `X-RateLimit-*`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers.

use std::io::Write as _;

use headgate::Decision;
use http::{HeaderMap, HeaderName, HeaderValue};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Whether somebody has written them.
pub(super) fn are_written(headers: &HeaderMap) -> bool {
    headers.contains_key(IETF)
}

/// Writes how somebody stands after `decision` under the limit of `class`.
pub(super) fn write(headers: &mut HeaderMap, class: &str, window_secs: u64, decision: &Decision) {
    headers.reserve(5);
    put(headers, LIMIT, decision.limit);
    put(headers, REMAINING, decision.remaining);
    put(headers, RESET, decision.reset_at_secs());
    put_field(headers, IETF_POLICY, class, [(";q=", decision.limit), (";w=", window_secs)]);
    let left = [(";r=", decision.remaining), (";t=", decision.reset_after_secs())];
    put_field(headers, IETF, class, left);
}

/// A number. The library's own way of making its header allocates twice.
pub(super) fn put(headers: &mut HeaderMap, header: HeaderName, number: u64) {
    let mut digits = itoa::Buffer::new();
    if let Ok(value) = HeaderValue::from_bytes(digits.format(number).as_bytes()) {
        headers.insert(header, value);
    }
}

/// A structured field with one item: the class, and parameters.
fn put_field(
    headers: &mut HeaderMap,
    header: HeaderName,
    class: &str,
    parameters: [(&str, u64); 2],
) {
    // Quotes, a name of at most 16 bytes, two numbers of up to 20 digits, two parameters' names.
    let mut text = Vec::with_capacity(64);
    let _ = write!(text, "\"{class}\"");
    let mut digits = itoa::Buffer::new();
    for (name, value) in parameters {
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(digits.format(value).as_bytes());
    }
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(header, value);
    }
}
