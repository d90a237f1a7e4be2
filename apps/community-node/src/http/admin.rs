//! The admin API: documents, the denylist, and the audit log.
//!
//! The password opens a session: a cookie that scripts and other sites cannot use.

mod audit;
mod denylist;
mod documents;
mod login;
mod sessions;

use std::sync::Arc;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{get, post},
};

pub(super) use self::sessions::Sessions;
use super::{Http, error::ApiError};

/// Maximum size of a request body: more than a document may have, for a proper error message.
const MAX_BYTES: usize = 256 * 1024;

/// Actor in the audit log: there is one administrator.
const ADMIN: &str = "admin";

pub(super) fn router(http: &Arc<Http>) -> Router {
    let signed_in = middleware::from_fn_with_state(Arc::clone(http), signed_in);
    Router::new()
        .route("/v1/admin/services", get(documents::list))
        .route("/v1/admin/services/{service}/config", get(documents::get).put(documents::put))
        .route(
            "/v1/admin/denylist",
            get(denylist::list).put(denylist::put).delete(denylist::remove),
        )
        .route("/v1/admin/audit-logs", get(audit::list))
        .route_layer(signed_in)
        .route("/v1/admin/login", post(login::login))
        .route("/v1/admin/logout", post(login::logout))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(Arc::clone(http))
}

/// Requires a session.
async fn signed_in(
    State(http): State<Arc<Http>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let session = login::session(request.headers()).ok_or(ApiError::AUTH_REQUIRED)?;
    if !http.sessions.holds(session, http.node.seconds()) {
        return Err(ApiError::AUTH_REQUIRED);
    }
    Ok(next.run(request).await)
}
