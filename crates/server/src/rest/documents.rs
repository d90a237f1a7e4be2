//! `/api/v1/services`: documents of services that embed the guard, and which instance runs on
//! which.

mod catalog;
pub(super) mod changes;
mod wire;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_auth::Action;
use headgate_service_config::{
    ConfigUpdate, DocumentStoreError, Invalid, ServiceConfig, ServiceConfigRepository,
};
use serde::Serialize;
use utoipa::ToSchema;

use self::{
    catalog::{ServiceCatalog, StoredService},
    wire::{WireDocument, WirePut, WireState},
};
use super::{
    caller::Caller,
    error::{ApiError, Detail},
    json,
    json_body::JsonBody,
    path::PathParam,
    schemas::{DocumentChanged, Failing, NoSuchService, Protected, WithBody},
};

pub(super) const PATH: &str = "/api/v1/services";

/// Longest request body: a document and its envelope.
const MAX_BYTES: usize = 128 * 1024;

/// All services, and their instances.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceDocuments)]
pub(super) struct WireDocuments {
    services: Vec<WireDocument>,
    /// The document that each instance runs on.
    instances: Vec<WireState>,
}

/// Lists all services with their documents, and their instances.
#[utoipa::path(
    get,
    path = PATH,
    tag = "services",
    operation_id = "list_services",
    security(("token" = [])),
    responses((status = 200, description = "Services that registered a kind of document, have a document, or reported an instance", body = WireDocuments), Protected, Failing),
)]
pub(super) async fn list(
    State(documents): State<Arc<dyn ServiceConfigRepository>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadServices).await?;
    let catalog = ServiceCatalog::load(&*documents).await?;
    let names = catalog.names();
    Ok(json::respond(&WireDocuments {
        services: names.into_iter().map(|name| WireDocument::of(name, &catalog)).collect(),
        instances: catalog.states.iter().map(WireState::from).collect(),
    }))
}

/// Shows the document of a service.
#[utoipa::path(
    get,
    path = "/api/v1/services/{service}",
    tag = "services",
    operation_id = "get_service",
    params(("service" = String, Path, description = "Name of the service")),
    security(("token" = [])),
    responses((status = 200, description = "The document; version 0 if there is none", body = WireDocument), NoSuchService, Protected, Failing),
)]
pub(super) async fn get(
    State(documents): State<Arc<dyn ServiceConfigRepository>>,
    caller: Caller,
    PathParam(name): PathParam,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadServices).await?;
    let service = StoredService::load(&*documents, &name).await?;
    let (document, registered) = (service.document.as_ref(), service.is_registered());
    Ok(json::respond(&WireDocument::new(&name, document, registered)))
}

/// Stores a document under the next version; services read it at once.
///
/// Documents of a registered kind are validated field by field. Of others, only the size and the
/// names of fields are checked: no field may be named like a secret.
#[utoipa::path(
    put,
    path = "/api/v1/services/{service}",
    tag = "services",
    operation_id = "put_service",
    params(("service" = String, Path, description = "Name of the service")),
    request_body = WirePut<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The document", body = WireDocument), NoSuchService, DocumentChanged, WithBody, Protected, Failing),
)]
pub(super) async fn put(
    State(documents): State<Arc<dyn ServiceConfigRepository>>,
    caller: Caller,
    PathParam(name): PathParam,
    body: JsonBody<MAX_BYTES>,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteServices).await?;
    let wire: WirePut<'_> = body.parse()?;
    let (config, expected_version) = wire.read()?;
    let service = StoredService::load(&*documents, &name).await?;
    service.validate(&config).map_err(invalid)?;
    let update = ConfigUpdate { service: name, config, expected_version };
    let stored: ServiceConfig = documents.put(&update, &author).await?;
    Ok(json::respond(&WireDocument::new(&stored.service, Some(&stored), service.is_registered())))
}

fn invalid(invalid: Invalid) -> ApiError {
    let at = |field: String, message: String| Detail::at(field, "invalid", message);
    ApiError::Invalid(match invalid {
        Invalid::Service { .. } => return ApiError::NoSuchService(invalid.to_string()),
        Invalid::TooLarge(_) => vec![Detail::new("config", "length", invalid.to_string())],
        Invalid::Secrets(pointers) => {
            let secret = "documents hold no secrets; rename or remove it";
            pointers.into_iter().map(|pointer| at(pointer, secret.to_owned())).collect()
        }
        Invalid::Fields(problems) => {
            problems.into_iter().map(|problem| at(problem.pointer, problem.message)).collect()
        }
    })
}

impl From<DocumentStoreError> for ApiError {
    fn from(error: DocumentStoreError) -> Self {
        let text = error.to_string();
        match error {
            DocumentStoreError::VersionMismatch { .. } => {
                Self::DocumentChanged(format!("{text}: read it again and repeat the change"))
            }
            DocumentStoreError::Corrupt(_) => Self::Internal(text),
            DocumentStoreError::AuditLog(_) | DocumentStoreError::Unavailable(_) => {
                Self::NoDatabase(text)
            }
        }
    }
}
