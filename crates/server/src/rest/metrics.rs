//! `GET /metrics`.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, header},
    response::Response,
};
use headgate_api::Operations;
use headgate_telemetry::metrics::Format;

use super::{
    error::{ApiError, Envelope},
    schemas::Late,
};

/// Shows all metrics, in Prometheus' text format or, if `accept` asks for it, as `OpenMetrics`.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    operation_id = "metrics",
    responses(
        (
            status = 200,
            description = "The metrics",
            content(
                (String = "text/plain; version=0.0.4; charset=utf-8"),
                (String = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            ),
        ),
        (status = 500, description = "An internal error; the server's log has the cause", body = Envelope<'_>),
        Late,
    ),
)]
pub(super) async fn render(
    State(operations): State<Arc<Operations>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let format = Format::accepted(&headers);
    let text = operations.metrics_text(format).await;
    let text = text.map_err(|error| ApiError::Internal(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, format.content_type());
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}
