//! The API.

pub(crate) mod error;
mod request;
mod show;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{ConnectInfo, DefaultBodyLimit, State, rejection::BytesRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use headgate_guard::DrainLayer;
use serde_json::json;

use self::error::ApiError;
use crate::App;

/// Maximum size of a request: a post is far smaller, even with characters of many code points.
const MAX_BYTES: usize = 16 * 1024;

/// The routes.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/api/posts", post(create))
        .route("/api/posts/{id}", get(show::show))
        .route("/api/health", get(health))
        .route("/health", get(health))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        // Drains unread bodies, so that clients receive early refusals.
        .layer(DrainLayer)
        .with_state(Arc::new(app))
}

/// `POST /api/posts`
async fn create(
    State(app): State<Arc<App>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let draft = request::draft(&headers, &body?)?;
    let client = app.proxies.client(peer.ip(), &headers);
    // Runs in its own task, which continues if the client hangs up: the commit is never skipped.
    let publishing = tokio::spawn(async move { app.publisher.publish(client, draft).await });
    let post = publishing.await??;
    let created = json!({ "id": post.id.to_string(), "status": post.status });
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

/// `GET /health`: 200 until the service stops. Stores are not checked: during their outages posts
/// either continue or fail on their own.
async fn health(State(app): State<Arc<App>>) -> Response {
    if app.is_stopping() {
        let stopping = Json(json!({ "status": "stopping" }));
        return (StatusCode::SERVICE_UNAVAILABLE, stopping).into_response();
    }
    Json(json!({ "status": "ok" })).into_response()
}
