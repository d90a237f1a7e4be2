//! Error responses.

use std::borrow::Cow;

use axum::{
    Json,
    extract::rejection::BytesRejection,
    http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tracing::error;

/// An error response: `{code, message, details}`.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: Cow<'static, str>,
    details: Value,
}

// === impl ApiError ===

impl ApiError {
    pub(crate) const AUTH_REQUIRED: Self =
        Self::fixed(StatusCode::UNAUTHORIZED, "AUTH_REQUIRED", "a token is required");
    pub(crate) const AUTH_FAILED: Self =
        Self::fixed(StatusCode::UNAUTHORIZED, "AUTH_FAILED", "authentication failed");
    pub(crate) const ADMIN_CLOSED: Self = Self::fixed(
        StatusCode::FORBIDDEN,
        "ADMIN_CLOSED",
        "the admin API is closed; set CN_ADMIN_PASSWORD to open it",
    );
    pub(crate) const DENIED: Self =
        Self::fixed(StatusCode::FORBIDDEN, "DENIED", "access is denied by the operator");
    pub(crate) const NOT_FOUND: Self =
        Self::fixed(StatusCode::NOT_FOUND, "NOT_FOUND", "there is nothing here");
    pub(crate) const TIMEOUT: Self =
        Self::fixed(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", "the answer took too long");
    pub(crate) const INTERNAL: Self = Self::fixed(
        StatusCode::INTERNAL_SERVER_ERROR,
        "INTERNAL_ERROR",
        "something is broken here",
    );
    pub(crate) const INVALID_PUBKEY: Self = Self::fixed(
        StatusCode::BAD_REQUEST,
        "INVALID_PUBKEY",
        "pubkey must be 64 hexadecimal digits of a public key",
    );
    pub(crate) const INVALID_TOPIC: Self = Self::fixed(
        StatusCode::BAD_REQUEST,
        "INVALID_TOPIC",
        "a topic has 1 to 128 letters, digits and '-', '_', '.', ':'",
    );
    const METHOD_NOT_ALLOWED: Self = Self::fixed(
        StatusCode::METHOD_NOT_ALLOWED,
        "METHOD_NOT_ALLOWED",
        "this cannot be done here",
    );

    const fn fixed(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self { status, code, message: Cow::Borrowed(message), details: Value::Null }
    }

    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, code, message: message.into(), details: Value::Null }
    }

    /// An invalid request.
    pub(crate) fn invalid(code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A failure of the database, whose cause is only logged.
    pub(crate) fn database(cause: impl std::fmt::Display) -> Self {
        error!(%cause, "database failed to serve a request");
        Self::fixed(
            StatusCode::INTERNAL_SERVER_ERROR,
            "DB_ERROR",
            "the database does not answer; try again",
        )
    }

    #[must_use]
    pub(crate) fn details(self, details: Value) -> Self {
        Self { details, ..self }
    }
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::fixed(
                StatusCode::PAYLOAD_TOO_LARGE,
                "PAYLOAD_TOO_LARGE",
                "the request is too large",
            ),
            _ => Self::invalid("INVALID_BODY", "the body did not arrive"),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = json!({"code": self.code, "message": self.message, "details": self.details});
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

pub(super) async fn not_found() -> ApiError {
    ApiError::NOT_FOUND
}

pub(super) async fn method_not_allowed() -> ApiError {
    ApiError::METHOD_NOT_ALLOWED
}
