//! Refuses addresses that the operator denies.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::{Http, error::ApiError};
use crate::metrics::Reason;

/// Paths that are served to denied addresses: operators who deny their own network can undo it, and
/// probes work.
const OPEN: [&str; 3] = ["/v1/admin", "/healthz", "/metrics"];

/// Refuses requests of denied addresses before they are counted.
pub(super) async fn deny(
    State(http): State<Arc<Http>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let path = request.uri().path();
    let address = http.guard.client(&request);
    let is_denied = address.is_some_and(|it| http.node.denies_address(it));
    if is_denied && !OPEN.iter().any(|open| path.starts_with(open)) {
        http.node.metrics.reject("user-api", Reason::Denied);
        return Err(ApiError::DENIED);
    }
    Ok(next.run(request).await)
}
