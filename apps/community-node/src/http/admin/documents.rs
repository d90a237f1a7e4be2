//! Routes of documents.

use std::{collections::BTreeSet, sync::Arc};

use axum::{Extension, Json, extract::State, http::StatusCode};
use headgate_quota::Author;
use headgate_service_config::{
    ConfigUpdate, DocumentStoreError, Invalid, ServiceConfig, ServiceConfigRepository, ServiceState,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        Http,
        body::{JsonBody, PathPart},
        error::ApiError,
        limits,
        request_id::RequestId,
    },
    ADMIN,
};
use crate::documents;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    config_json: Value,
    expected_version: Option<i64>,
}

/// `GET /v1/admin/services`: all documents, and the version that each instance runs on.
pub(super) async fn list(State(http): State<Arc<Http>>) -> Result<Json<Value>, ApiError> {
    let documents = http.node.database.service_configs();
    let configs = documents.list().await.map_err(refused)?;
    let states = documents.states().await.map_err(refused)?;
    let known: BTreeSet<&str> = configs.iter().map(|config| config.service.as_str()).collect();
    let others = states.iter().map(|state| state.service.as_str());
    let others: BTreeSet<&str> = others.filter(|service| !known.contains(service)).collect();
    let with_instances = |service: &str, mut shown: Value| {
        let running = states.iter().filter(|state| state.service == service).map(instance);
        shown["instances"] = running.collect();
        shown
    };
    let stored = configs.iter().map(|config| with_instances(&config.service, document(config)));
    let without_document = others.into_iter().map(|service| {
        with_instances(service, json!({"service": service, "version": null, "config_json": null}))
    });
    Ok(Json(json!({"items": stored.chain(without_document).collect::<Vec<_>>()})))
}

/// `GET /v1/admin/services/{service}/config`
pub(super) async fn get(
    State(http): State<Arc<Http>>,
    PathPart(service): PathPart,
) -> Result<Json<Value>, ApiError> {
    let found = http.node.database.service_configs().get(&service).await.map_err(refused)?;
    found.map(|config| Json(document(&config))).ok_or(ApiError::NOT_FOUND)
}

/// `PUT /v1/admin/services/{service}/config`
pub(super) async fn put(
    State(http): State<Arc<Http>>,
    PathPart(service): PathPart,
    Extension(id): Extension<RequestId>,
    body: JsonBody<Put>,
) -> Result<Json<Value>, ApiError> {
    let Put { config_json: config, expected_version } = body.value;
    documents::kinds().validate(&service, &config).map_err(invalid)?;
    let node = &http.node;
    let author = Author { actor: ADMIN.to_owned(), request_id: id.id, at: node.clock.now() };
    let update = ConfigUpdate { service, config, expected_version };
    let kept = node.database.service_configs().put(&update, &author).await.map_err(refused)?;
    node.refresh(&kept.service).await;
    // The response comes after the change is in force.
    limits::replace(&http);
    Ok(Json(document(&kept)))
}

fn invalid(invalid: Invalid) -> ApiError {
    let message = invalid.to_string();
    match invalid {
        Invalid::Service { .. } => ApiError::NOT_FOUND,
        Invalid::Secrets(pointers) => ApiError::invalid("SECRET_CONFIG_FORBIDDEN", message)
            .details(json!({"paths": pointers})),
        Invalid::Fields(problems) => {
            ApiError::invalid("INVALID_CONFIG", message).details(json!({"problems": problems}))
        }
        Invalid::TooLarge(_) => ApiError::invalid("INVALID_CONFIG", message),
    }
}

pub(super) fn refused(error: DocumentStoreError) -> ApiError {
    match error {
        DocumentStoreError::VersionMismatch { current } => {
            let details = json!({"current_version": current});
            ApiError::new(StatusCode::CONFLICT, "VERSION_MISMATCH", error.to_string())
                .details(details)
        }
        DocumentStoreError::AuditLog(cause) => {
            tracing::error!(%cause, "failed to write to the audit log");
            let message = "the change could not be written to the audit log, and was not made";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "AUDIT_LOG_ERROR", message)
        }
        error @ (DocumentStoreError::Corrupt(_) | DocumentStoreError::Unavailable(_)) => {
            ApiError::database(error)
        }
    }
}

fn document(config: &ServiceConfig) -> Value {
    json!({
        "service": config.service,
        "version": config.version,
        "config_json": config.config,
        "updated_at": config.updated_at.as_micros() / 1_000_000,
        "updated_by": config.updated_by,
    })
}

fn instance(state: &ServiceState) -> Value {
    json!({
        "instance": state.instance,
        "version": state.version,
        "source": state.source,
        "seen_at": state.seen_at.as_micros() / 1_000_000,
    })
}
