//! Error responses.

use axum::{
    Json,
    extract::rejection::BytesRejection,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::task::JoinError;
use tracing::error;

use crate::{cooldown::Refusal, post::Invalid, publish::PublishError};

/// An error response.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: &'static str,
    /// Seconds until a retry may succeed, if waiting helps.
    retry_after: Option<u64>,
}

/// JSON of an error response.
#[derive(Serialize)]
struct Envelope {
    error: &'static str,
    code: &'static str,
}

// === impl ApiError ===

impl ApiError {
    const TOO_MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;
    const UNPROCESSABLE: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;

    pub(super) const BAD_REQUEST: Self =
        Self::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", "リクエスト形式が正しくありません");
    pub(super) const NOT_FOUND: Self =
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", "投稿が見つかりません");
    pub(super) const TOO_LARGE: Self =
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", "リクエストが大きすぎます");
    pub(super) const UNSUPPORTED_MEDIA_TYPE: Self = Self::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UNSUPPORTED_MEDIA_TYPE",
        "Content-Typeはapplication/jsonにしてください",
    );
    pub(crate) const TIMEOUT: Self =
        Self::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", "リクエストがタイムアウトしました");
    pub(super) const INTERNAL: Self = Self::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "INTERNAL_ERROR",
        "サーバーでエラーが発生しました",
    );
    const RATE_LIMITED: Self = Self::new(Self::TOO_MANY, "RATE_LIMITED", "投稿頻度を制限中");
    const DUPLICATE_CONTENT: Self =
        Self::new(Self::UNPROCESSABLE, "DUPLICATE_CONTENT", "同じ内容の投稿があります");

    const fn new(status: StatusCode, code: &'static str, message: &'static str) -> Self {
        Self { status, code, message, retry_after: None }
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Refused(Refusal::Limited { retry_after }) => {
                Self { retry_after: Some(retry_after), ..Self::RATE_LIMITED }
            }
            PublishError::Refused(Refusal::Duplicate) => Self::DUPLICATE_CONTENT,
            PublishError::Refused(Refusal::Bug(bug)) => {
                error!(%bug, "invalid request to the store of cooldowns");
                Self::INTERNAL
            }
            PublishError::Invalid(invalid) => invalid.into(),
            PublishError::Unsaved(_) => Self::INTERNAL,
        }
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        Self::new(Self::UNPROCESSABLE, "VALIDATION_ERROR", invalid.message())
    }
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TOO_LARGE,
            _ => Self::BAD_REQUEST,
        }
    }
}

impl From<JoinError> for ApiError {
    fn from(error: JoinError) -> Self {
        error!(%error, "the task that publishes a post failed");
        Self::INTERNAL
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let envelope = Json(Envelope { error: self.message, code: self.code });
        let mut response = (self.status, envelope).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
