//! `GET /metrics`.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use headgate_api::Operations;

use super::{
    error::{ApiError, Envelope},
    schemas::Late,
};

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Shows all metrics in Prometheus' text format.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    operation_id = "metrics",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8"),
        (status = 500, description = "An internal error; the server's log has the cause", body = Envelope<'_>),
        Late,
    ),
)]
pub(super) async fn render(
    State(operations): State<Arc<Operations>>,
) -> Result<Response, ApiError> {
    let text = operations.metrics_text().await;
    let text = text.map_err(|error| ApiError::Internal(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    Ok(response)
}
