//! Addresses that the operator denies.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};

use super::{Http, error::ApiError};
use crate::metrics::Reason;

/// What is answered to everybody: an operator who denies their own network can undo it, and a probe
/// finds out how the node is.
const OPEN: [&str; 3] = ["/v1/admin", "/healthz", "/metrics"];

/// Refuses a request of an address that is denied, before it is counted.
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
