//! JSON bodies, in and out.

use axum::{
    body::{Body, Bytes},
    extract::{FromRequest, Request},
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};

use super::error::ApiError;

/// The most any request needs, with room to spare.
pub(super) const MAX_BODY_BYTES: usize = 64 * 1024;

pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/json");

/// The most that a list of rules needs.
pub(super) const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;

/// A body that was sent as JSON; [`parse`](Self::parse) sees whether it is.
pub(super) struct JsonBody<const MAX_BYTES: usize = MAX_BODY_BYTES>(Bytes);

impl<const MAX_BYTES: usize> JsonBody<MAX_BYTES> {
    /// The object in the body, which it may borrow from.
    pub(super) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        let wrong = |message: String| Err(ApiError::BadBody(message));
        match self.0.trim_ascii_start().first() {
            None => return wrong("the body is empty; expected a JSON object".to_owned()),
            // Serde would read a list as an object whose keys were left out.
            Some(byte) if *byte != b'{' => {
                return wrong("the body must be a JSON object".to_owned());
            }
            Some(_) => {}
        }
        match serde_json::from_slice(&self.0) {
            Ok(object) => Ok(object),
            Err(error) if error.is_data() => wrong(format!("the body does not fit: {error}")),
            Err(error) => wrong(format!("the body is not valid JSON: {error}")),
        }
    }
}

impl<S: Sync, const MAX_BYTES: usize> FromRequest<S> for JsonBody<MAX_BYTES> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            return Err(ApiError::NotJson);
        }
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > MAX_BYTES as u64) {
            return Err(ApiError::TooLarge(MAX_BYTES));
        }
        match Limited::new(request.into_body(), MAX_BYTES).collect().await {
            Ok(body) => Ok(Self(body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => Err(ApiError::TooLarge(MAX_BYTES)),
            Err(_) => Err(ApiError::Interrupted),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// A response with `value` as its body.
pub(super) fn respond(value: &impl Serialize) -> Response {
    let mut response = Response::new(Body::from(to_vec(value)));
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

/// `value` as JSON.
pub(super) fn to_vec(value: &impl Serialize) -> Vec<u8> {
    const USUAL_BYTES: usize = 160;
    let mut body = Vec::with_capacity(USUAL_BYTES);
    // Our own structs have text keys and go to memory: neither can fail.
    if serde_json::to_writer(&mut body, value).is_err() {
        body.clear();
    }
    body
}
