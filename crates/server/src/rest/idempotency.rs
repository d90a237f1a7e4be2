//! Idempotency keys: the `request_id` of a body, or the `Idempotency-Key` header.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue},
    response::Response,
};

use super::error::Detail;

/// The header with the key.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header that marks the response to a repeated request.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Returns the key in the headers, if there is one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&str>, Detail> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| {
        let message = "Idempotency-Key must have visible ASCII characters only".to_owned();
        Detail::new("Idempotency-Key", "invalid", message)
    })?;
    // The header is defined as a quoted string; most clients omit the quotes.
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    Ok(Some(bare.unwrap_or(text)))
}

/// Marks the response to a repeated request.
pub(super) fn mark(response: &mut Response, replayed: bool) {
    if replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
}
