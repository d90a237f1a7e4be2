//! `GET /api/posts/{id}`

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use serde_json::json;
use tracing::error;
use uuid::Uuid;

use super::error::ApiError;
use crate::App;

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let id: Uuid = id.parse().map_err(|_| ApiError::NOT_FOUND)?;
    let found = app.posts.find(id).await.map_err(|error| {
        error!(%error, "failed to read a post");
        ApiError::INTERNAL
    })?;
    let post = found.ok_or(ApiError::NOT_FOUND)?;
    let created_at = Timestamp::from_second(post.created_at as i64).unwrap_or_default();
    let shown = json!({
        "id": post.id.to_string(),
        "nickname": post.nickname,
        "body": post.body,
        "status": post.status,
        "created_at": created_at.strftime("%Y-%m-%dT%H:%M:%S.000+00:00").to_string(),
    });
    Ok(Json(shown).into_response())
}
