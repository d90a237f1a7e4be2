//! JSON bodies of responses.

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use serde::Serialize;

/// The `Content-Type` of JSON.
pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");

/// A response with `value` as its body.
pub(super) fn respond(value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(to_bytes(value)));
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

/// Serializes `value`, with one allocation if it is as short as most responses.
pub(super) fn to_bytes(value: &impl Serialize) -> Bytes {
    const USUAL_BYTES: usize = 256;
    let mut usual = [0; USUAL_BYTES];
    let mut left = &mut usual[..];
    match serde_json::to_writer(&mut left, value) {
        Ok(()) => {
            let unused = left.len();
            Bytes::copy_from_slice(&usual[..USUAL_BYTES - unused])
        }
        Err(_) => to_vec(value).into(),
    }
}

/// `value` as JSON.
pub(super) fn to_vec(value: &impl Serialize) -> Vec<u8> {
    // Cannot fail: our structs have string keys, and memory accepts all writes.
    serde_json::to_vec(value).unwrap_or_default()
}
