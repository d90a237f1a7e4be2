//! Bodies within bounds.

use axum::{
    body::Bytes,
    extract::{FromRequest, Request},
};
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// A body of JSON, and its bytes.
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
            // What stands where is told, what stood there is not.
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let message =
                    format!("the body is not the expected JSON: line {line}, column {column}");
                Err(ApiError::invalid("INVALID_JSON", message))
            }
        }
    }
}
