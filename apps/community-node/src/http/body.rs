//! Extractors of a request's body, query and path.

use axum::{
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A JSON body, with its bytes.
pub(crate) struct JsonBody<T> {
    pub(crate) value: T,
    pub(crate) bytes: Bytes,
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self { value, bytes }),
            // The error names the position, or an unknown field.
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let unknown = unknown_field(&error.to_string()).map(|field| format!(": {field}"));
                let unknown = unknown.unwrap_or_default();
                let message = format!(
                    "the body is not the expected JSON: line {line}, column {column}{unknown}"
                );
                Err(ApiError::invalid("INVALID_JSON", message))
            }
        }
    }
}

/// Query parameters.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Query(params) = Query::try_from_uri(&parts.uri).map_err(|error| {
            let message = unknown_field(&error.body_text())
                .unwrap_or_else(|| "a parameter is not of the kind that is expected".to_owned());
            ApiError::invalid("INVALID_QUERY", message)
        })?;
        Ok(Self(params))
    }
}

/// Maximum size of the name of an unknown field that is repeated.
const MAX_FIELD_BYTES: usize = 64;

/// Maximum size of the names of the known fields that are listed.
const MAX_KNOWN_BYTES: usize = 512;

/// Names the field that an error of serde is about, if it is unknown and not too long.
fn unknown_field(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("unknown field `")?;
    let (field, rest) = rest.split_once("`, expected ")?;
    if field.len() > MAX_FIELD_BYTES || rest.len() > MAX_KNOWN_BYTES {
        return None;
    }
    let known = rest.split(" at line ").next().unwrap_or_default();
    Some(format!("unknown field {field:?}, expected {known}"))
}

/// The one variable part of a path.
pub(crate) struct PathPart(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathPart {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let part = Path::from_request_parts(parts, state).await;
        part.map(|Path(part)| Self(part)).map_err(|_| ApiError::NOT_FOUND)
    }
}
