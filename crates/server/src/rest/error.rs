//! Every error of this surface, and the one envelope they travel in:
//! `{"error":{"code","message","request_id","details"?}}`.
//!
//! Handlers return an [`ApiError`]. It becomes a response without a body that carries the
//! error along; `surface`, which knows the request's id, writes the envelope.

use std::borrow::Cow;

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::{json, request_id::RequestId};

/// Why a request was not answered.
#[derive(Clone, Debug)]
pub(super) enum ApiError {
    /// Fields do not fit.
    Invalid(Vec<Detail>),
    /// The body is not what was asked for; says in what way.
    BadBody(String),
    /// The body is something else than JSON.
    NotJson,
    /// The body is larger than any request needs.
    TooLarge,
    /// The body did not arrive.
    Interrupted,
    /// There is nothing at this path.
    NoSuchRoute(String),
    /// There is something at this path, but not for this method.
    NoSuchMethod(Method),
    /// The request took too long.
    TimedOut,
    /// Something of ours failed; the log says what.
    Internal(String),
}

/// A field that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Detail {
    pub(super) field: &'static str,
    pub(super) message: String,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Inside<'a>,
}

#[derive(Serialize)]
struct Inside<'a> {
    code: &'static str,
    message: Cow<'static, str>,
    request_id: &'a str,
    #[serde(skip_serializing_if = "<[Detail]>::is_empty")]
    details: &'a [Detail],
}

pub(super) async fn no_such_route(method: Method, uri: Uri) -> ApiError {
    const MAX_CHARS: usize = 200;
    let path: String = uri.path().chars().take(MAX_CHARS).collect();
    ApiError::NoSuchRoute(format!("{method} {path}"))
}

pub(super) async fn no_such_method(method: Method) -> ApiError {
    ApiError::NoSuchMethod(method)
}

// === impl ApiError ===

impl ApiError {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::BadBody(_) | Self::Interrupted => StatusCode::BAD_REQUEST,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoSuchRoute(_) => StatusCode::NOT_FOUND,
            Self::NoSuchMethod(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::BadBody(_) => "SYS_RATELIMIT_VALIDATION_ERROR",
            Self::Interrupted => "SYS_RATELIMIT_ERROR",
            Self::NotJson => "SYS_RATELIMIT_UNSUPPORTED_MEDIA_TYPE",
            Self::TooLarge => "SYS_RATELIMIT_BODY_TOO_LARGE",
            Self::NoSuchRoute(_) => "SYS_RATELIMIT_NOT_FOUND",
            Self::NoSuchMethod(_) => "SYS_RATELIMIT_METHOD_NOT_ALLOWED",
            Self::TimedOut => "SYS_RATELIMIT_TIMEOUT",
            Self::Internal(_) => "SYS_RATELIMIT_INTERNAL_ERROR",
        }
    }

    /// What the caller is told. What failed inside is the log's business.
    fn message(&self) -> Cow<'static, str> {
        match self {
            Self::Invalid(_) => "validation failed".into(),
            Self::BadBody(what) => what.clone().into(),
            Self::NotJson => "the body must be sent as content-type: application/json".into(),
            Self::TooLarge => {
                format!("the body must be at most {} bytes", json::MAX_BODY_BYTES).into()
            }
            Self::Interrupted => "the body did not arrive completely".into(),
            Self::NoSuchRoute(asked) => format!("no such endpoint: {asked}").into(),
            Self::NoSuchMethod(method) => {
                format!("{method} is not supported here; the Allow header says what is").into()
            }
            Self::TimedOut => "the request took too long".into(),
            Self::Internal(_) => "internal error".into(),
        }
    }

    fn details(&self) -> &[Detail] {
        match self {
            Self::Invalid(details) => details,
            _ => &[],
        }
    }

    /// The body that tells the caller.
    pub(super) fn envelope(&self, id: &RequestId) -> Vec<u8> {
        let error = Inside {
            code: self.code(),
            message: self.message(),
            request_id: id.as_str(),
            details: self.details(),
        };
        json::to_vec(&Envelope { error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        response.headers_mut().insert(header::CONTENT_TYPE, json::CONTENT_TYPE);
        if matches!(self, Self::TooLarge | Self::TimedOut) {
            // The rest of the body is not read, so nothing can follow it.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response.extensions_mut().insert(self);
        response
    }
}
