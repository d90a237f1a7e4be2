//! `GET /api/v1/services/{service}/changes`: changes of a document.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate::Timestamp;
use headgate_auth::Action;
use headgate_service_config::{AuditFilter, ConfigChange, ServiceConfigRepository};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::catalog::StoredService;
use crate::rest::{
    caller::Caller,
    error::ApiError,
    json,
    path::PathParam,
    schemas::{Failing, NoSuchService, Protected},
    time,
};

/// Most changes in a list.
const MOST: u32 = 50;

/// The newest changes of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceChanges)]
pub(in crate::rest) struct WireChanges {
    changes: Vec<WireChange>,
}

/// One change of a document.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceChange)]
pub(in crate::rest) struct WireChange {
    id: i64,
    #[serde(serialize_with = "time::serialize")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    actor: String,
    action: String,
    /// Version and document `before` and `after`.
    #[schema(value_type = Object)]
    diff: Value,
    request_id: String,
}

/// Lists the newest changes of a document, the newest first.
#[utoipa::path(
    get,
    path = "/api/v1/services/{service}/changes",
    tag = "services",
    operation_id = "list_service_changes",
    params(("service" = String, Path, description = "Name of the service")),
    security(("token" = [])),
    responses((status = 200, description = "At most 50 changes", body = WireChanges), NoSuchService, Protected, Failing),
)]
pub(in crate::rest) async fn changes(
    State(documents): State<Arc<dyn ServiceConfigRepository>>,
    caller: Caller,
    PathParam(name): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadServices).await?;
    StoredService::load(&*documents, &name).await?;
    let target = ConfigChange::target(&name);
    let filter = AuditFilter { target: Some(target), limit: Some(MOST), ..AuditFilter::default() };
    let changes = documents.changes(&filter).await?;
    let changes = changes.into_iter().map(WireChange::from).collect();
    Ok(json::respond(&WireChanges { changes }))
}

impl From<ConfigChange> for WireChange {
    fn from(change: ConfigChange) -> Self {
        Self {
            id: change.id,
            at: change.author.at,
            actor: change.author.actor,
            action: change.action,
            diff: change.diff,
            request_id: change.author.request_id,
        }
    }
}
