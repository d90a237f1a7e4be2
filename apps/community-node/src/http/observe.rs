//! Metrics and timeouts of requests.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{MatchedPath, Request, State},
    http::Method,
    middleware::Next,
    response::{IntoResponse, Response},
};
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::{Http, error::ApiError, request_id::RequestId};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Counts a request by the template of its route: a path may hold a public key.
pub(super) async fn observe(
    State(http): State<Arc<Http>>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unmatched", MatchedPath::as_str);
    let method = known(request.method());
    let id = request.extensions().get::<RequestId>().cloned();
    let began = Instant::now();
    let answer = timeout(TIMEOUT, next.run(request)).await;
    let answer = answer.unwrap_or_else(|_| ApiError::TIMEOUT.into_response());

    let (status, took) = (answer.status(), began.elapsed());
    let labels = [service(route), route, method, status.as_str()];
    let metrics = &http.node.metrics;
    metrics.http_requests.with_label_values(&labels).inc();
    metrics.http_request_duration.with_label_values(&labels).observe(took.as_secs_f64());
    let id = id.filter(|id| !id.given).map(|id| id.id);
    debug!(route, method, status = status.as_u16(), request_id = id, "answered");
    answer
}

fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

fn service(route: &str) -> &'static str {
    if route.starts_with("/v1/admin") {
        "admin"
    } else if route.starts_with("/v1/bootstrap") {
        "bootstrap"
    } else if route.starts_with("/v1") {
        "user-api"
    } else {
        "node"
    }
}
