//! What callers of this surface are told when they do not get what they asked for.

use std::borrow::Cow;

use headgate_ratelimit::{KeyedAlgorithm, keyed::UnknownKeyedAlgorithm, usecase::KeyedError};
use serde::Serialize;
use thiserror::Error;
use utoipa::ToSchema;

use crate::{
    area::Area,
    rest::{error::ApiError, json},
};

/// Why a question of this surface makes no sense.
#[derive(Clone, Debug, Error)]
pub(in crate::rest) enum Refusal {
    /// There is no such algorithm.
    #[error(transparent)]
    Algorithm(#[from] UnknownKeyedAlgorithm),
    /// A parameter is missing, or not of its type.
    #[error("{0}")]
    Parameter(String),
    /// A parameter has a value that cannot be.
    #[error("{0}")]
    Argument(String),
}

/// An error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RateLimitError)]
pub(in crate::rest) struct Envelope<'a> {
    /// For programs.
    error: &'a str,
    /// For people.
    #[schema(value_type = String)]
    message: Cow<'a, str>,
    /// The algorithm that was asked for, where there is none of that name.
    #[schema(required = true)]
    requested_algorithm: Option<&'a str>,
    /// Those that there are, where another was asked for.
    #[schema(required = true, value_type = Option<Vec<String>>)]
    supported_algorithms: Option<[&'static str; KeyedAlgorithm::ALL.len()]>,
}

/// The body that tells the caller.
pub(in crate::rest) fn envelope(error: &ApiError) -> Vec<u8> {
    let requested = match error {
        ApiError::Keyed(Refusal::Algorithm(UnknownKeyedAlgorithm(name))) => Some(name.as_str()),
        _ => None,
    };
    json::to_vec(&Envelope {
        error: code(error),
        message: error.message(),
        requested_algorithm: requested,
        supported_algorithms: requested.map(|_| KeyedAlgorithm::ALL.map(KeyedAlgorithm::name)),
    })
}

/// The code without the other surface's name in it.
fn code(error: &ApiError) -> &'static str {
    let code = error.code(Area::RateLimit);
    code.strip_prefix("SYS_RATELIMIT_").unwrap_or(code)
}

// === impl Refusal ===

impl Refusal {
    pub(in crate::rest) const fn code(&self) -> &'static str {
        match self {
            Self::Algorithm(_) | Self::Parameter(_) => "INVALID_PARAMETER",
            Self::Argument(_) => "INVALID_REQUEST",
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Keyed(refusal)
    }
}

impl From<KeyedError> for ApiError {
    fn from(error: KeyedError) -> Self {
        match error {
            KeyedError::Store(cause) => Self::store(&cause),
            KeyedError::Permits(_) | KeyedError::Batch(_) => {
                Refusal::Argument(error.to_string()).into()
            }
        }
    }
}
