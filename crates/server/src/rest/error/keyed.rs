//! Errors of limits by key.

use std::borrow::Cow;

use axum::http::HeaderValue;
use headgate_api::Namespace;
use headgate_ratelimit::{KeyedAlgorithm, keyed::UnknownKeyedAlgorithm, usecase::KeyedError};
use serde::Serialize;
use thiserror::Error;
use utoipa::ToSchema;

use super::ApiError;
use crate::rest::json;

/// The `Cache-Control` of every response: each check takes units, so that no response may be
/// cached.
pub(in crate::rest) const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// An invalid request.
#[derive(Clone, Debug, Error)]
pub(in crate::rest) enum KeyedRefusal {
    /// Unknown algorithm.
    #[error(transparent)]
    Algorithm(#[from] UnknownKeyedAlgorithm),
    /// A parameter that is missing, unknown or malformed.
    #[error("{0}")]
    Parameter(String),
    /// A parameter whose value is out of range.
    #[error("{0}")]
    Argument(String),
}

/// An error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RateLimitError)]
pub(in crate::rest) struct Envelope<'a> {
    /// Machine-readable code.
    error: &'a str,
    /// Human-readable message.
    #[schema(value_type = String)]
    message: Cow<'a, str>,
    /// The requested algorithm, if it is unknown.
    #[schema(required = true)]
    requested_algorithm: Option<&'a str>,
    /// The known algorithms, if the requested one is unknown.
    #[schema(required = true, value_type = Option<Vec<String>>)]
    supported_algorithms: Option<[&'static str; KeyedAlgorithm::ALL.len()]>,
}

/// The body of an error.
pub(in crate::rest) fn envelope(error: &ApiError) -> Vec<u8> {
    let requested = match error {
        ApiError::Keyed(KeyedRefusal::Algorithm(UnknownKeyedAlgorithm(name))) => {
            Some(name.as_str())
        }
        _ => None,
    };
    json::to_vec(&Envelope {
        error: code(error),
        message: error.message(),
        requested_algorithm: requested,
        supported_algorithms: requested.map(|_| KeyedAlgorithm::ALL.map(KeyedAlgorithm::name)),
    })
}

/// The code without its namespace.
fn code(error: &ApiError) -> &'static str {
    let code = error.code(Namespace::RateLimit);
    code.strip_prefix("SYS_RATELIMIT_").unwrap_or(code)
}

// === impl KeyedRefusal ===

impl KeyedRefusal {
    pub(in crate::rest) const fn code(&self) -> &'static str {
        match self {
            Self::Algorithm(_) | Self::Parameter(_) => "INVALID_PARAMETER",
            Self::Argument(_) => "INVALID_REQUEST",
        }
    }
}

impl From<KeyedRefusal> for ApiError {
    fn from(refusal: KeyedRefusal) -> Self {
        Self::Keyed(refusal)
    }
}

impl From<KeyedError> for ApiError {
    fn from(error: KeyedError) -> Self {
        match error {
            KeyedError::Store(cause) => Self::store(&cause),
            KeyedError::Permits(_) | KeyedError::Batch(_) => {
                KeyedRefusal::Argument(error.to_string()).into()
            }
        }
    }
}
