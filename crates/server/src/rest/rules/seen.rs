//! The state of a rule that a caller has read: its `updated_at`, as an entity tag.

use axum::{
    http::{
        HeaderMap, HeaderValue,
        header::{ETAG, IF_MATCH},
    },
    response::Response,
};
use headgate::Timestamp;
use headgate_ratelimit::{RateLimitRule, Warning};

use super::WireRule;
use crate::rest::{
    error::{ApiError, Detail},
    json, time,
};

/// Parses `If-Match`: the `updated_at` that the caller has read.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<Timestamp>, ApiError> {
    let Some(value) = headers.get(IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let seen = time::parse(text.trim_matches('"')).ok_or_else(|| {
        let message = "If-Match must be the rule's ETag: its updated_at, in quotes".to_owned();
        ApiError::Invalid(vec![Detail::new("If-Match", "invalid", message)])
    })?;
    Ok(Some(seen))
}

/// A rule, with warnings and the tag of its state.
pub(super) fn tagged(rule: &RateLimitRule, warnings: Vec<Warning>) -> Response {
    let mut response = json::respond(&WireRule::from(rule).with_warnings(warnings));
    let tag = format!("\"{}\"", time::text(rule.updated_at));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}
