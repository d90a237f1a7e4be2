//! What every answer about a limit says in its headers: `X-RateLimit-*`, and the fields of
//! draft-ietf-httpapi-ratelimit-headers-11: `r` is what is left, `t` the seconds until there is more.

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

/// How somebody stands under the limit of a class.
pub(super) struct Standing<'a> {
    pub(super) class: &'a str,
    /// The limit's window; 0 where it has none in seconds.
    pub(super) window_secs: u64,
    /// Seconds until there is more than is left; `None` where nothing is missing.
    pub(super) more_secs: Option<u64>,
    pub(super) decision: &'a Decision,
}

/// Writes how somebody stands.
pub(super) fn write(headers: &mut HeaderMap, standing: &Standing<'_>) {
    let Standing { class, window_secs, more_secs, decision } = *standing;
    headers.reserve(5);
    put(headers, LIMIT, decision.limit);
    put(headers, REMAINING, decision.remaining);
    put(headers, RESET, decision.reset_at_secs());
    let window = (window_secs > 0).then_some(window_secs);
    put_field(headers, IETF_POLICY, class, (";q=", decision.limit), (";w=", window));
    put_field(headers, IETF, class, (";r=", decision.remaining), (";t=", more_secs));
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
    (name, value): (&str, u64),
    (optional, optional_value): (&str, Option<u64>),
) {
    // Quotes, a name of at most 16 bytes, two numbers of up to 20 digits, two parameters' names.
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
