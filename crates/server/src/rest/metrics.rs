//! `GET /metrics`.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use tracing::debug;

use super::{
    error::{ApiError, Envelope},
    health,
    openapi::Late,
};
use crate::services::Services;

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Everything that is counted, as Prometheus reads it.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    operation_id = "metrics",
    responses(
        (status = 200, description = "The metrics", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8"),
        (status = 500, description = "Something of the server's own failed; its log says what", body = Envelope<'_>),
        Late,
    ),
)]
pub(super) async fn render(State(services): State<Arc<Services>>) -> Result<Response, ApiError> {
    let text = match services.metrics_text.shared() {
        Some(text) => text,
        None => services.metrics_text.share(write(&services).await?),
    };
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    Ok(response)
}

async fn write(services: &Services) -> Result<String, ApiError> {
    // Whether the store is up is only known by asking it.
    if let Err(error) = health::ask_store(services).await {
        debug!(%error, "The store does not answer");
    }
    services.quotas.measure();
    services.metrics.render().map_err(|error| ApiError::Internal(error.to_string()))
}
