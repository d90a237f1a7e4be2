//! The state of a rule or policy that a caller has read: its `updated_at`, as an entity tag.

use axum::{
    http::{
        HeaderMap, HeaderValue,
        header::{ETAG, IF_MATCH},
    },
    response::Response,
};
use headgate::Timestamp;

use super::{
    error::{ApiError, Detail},
    time,
};

/// Parses `If-Match`: the `updated_at` of `what` that the caller has read.
pub(super) fn expected(headers: &HeaderMap, what: &str) -> Result<Option<Timestamp>, ApiError> {
    let Some(value) = headers.get(IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let seen = time::parse(text.trim_matches('"')).ok_or_else(|| {
        let message = format!("If-Match must be the {what}'s ETag: its updated_at, in quotes");
        ApiError::Invalid(vec![Detail::new("If-Match", "invalid", message)])
    })?;
    Ok(Some(seen))
}

/// Adds the tag of a state to a response.
pub(super) fn add(response: &mut Response, updated_at: Timestamp) {
    let tag = format!("\"{}\"", time::text(updated_at));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
}
