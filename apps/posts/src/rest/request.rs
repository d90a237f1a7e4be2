//! Parses a request.

use axum::http::{HeaderMap, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::ApiError;
use crate::post::Draft;

/// `{"post": {"nickname": "...", "body": "..."}}`. Other fields are ignored.
#[derive(Deserialize)]
struct Envelope {
    post: Map<String, Value>,
}

/// Parses the draft of a request.
pub(super) fn draft(headers: &HeaderMap, body: &[u8]) -> Result<Draft, ApiError> {
    if !is_json(headers) {
        return Err(ApiError::UNSUPPORTED_MEDIA_TYPE);
    }
    let envelope: Envelope = serde_json::from_slice(body).map_err(|_| ApiError::BAD_REQUEST)?;
    let Envelope { mut post } = envelope;
    if post.is_empty() {
        return Err(ApiError::BAD_REQUEST);
    }
    Ok(Draft { nickname: text(post.remove("nickname"))?, body: text(post.remove("body"))? })
}

fn text(value: Option<Value>) -> Result<Option<String>, ApiError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ApiError::BAD_REQUEST),
    }
}

/// Returns true if the content type is JSON or missing.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return true };
    let content_type = content_type.to_str().unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}
