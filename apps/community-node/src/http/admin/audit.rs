//! The audit log.

use std::sync::Arc;

use axum::{Json, extract::State};
use headgate::Timestamp;
use headgate_service_config::{AuditFilter, ConfigChange, ServiceConfigRepository};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{Http, body::Params, error::ApiError},
    documents::refused,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    action: Option<String>,
    target: Option<String>,
    /// Start of the range, in seconds since the Unix epoch.
    since: Option<u64>,
    limit: Option<u32>,
}

/// `GET /v1/admin/audit-logs?action&target&since&limit`: the newest first.
pub(super) async fn list(
    State(http): State<Arc<Http>>,
    Params(wanted): Params<Wanted>,
) -> Result<Json<Value>, ApiError> {
    let since = wanted.since.map(|since| Timestamp::from_micros(since.saturating_mul(1_000_000)));
    let filter =
        AuditFilter { action: wanted.action, target: wanted.target, since, limit: wanted.limit };
    let changes = http.node.database.service_configs().changes(&filter).await.map_err(refused)?;
    let items: Vec<Value> = changes.iter().map(change).collect();
    Ok(Json(json!({"items": items})))
}

fn change(change: &ConfigChange) -> Value {
    json!({
        "audit_id": change.id,
        "actor_admin_user_id": change.author.actor,
        "action": change.action,
        "target": change.target,
        "diff_json": change.diff,
        "request_id": change.author.request_id,
        "created_at": change.author.at.as_micros() / 1_000_000,
    })
}
