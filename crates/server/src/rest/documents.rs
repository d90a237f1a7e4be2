//! `/api/v1/services`: the documents of services that embed the guard, and who runs on which.

pub(super) mod changes;
mod wire;

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_service_config::{
    ConfigError, ConfigUpdate, Invalid as Unfit, ServiceConfig, document::SERVICES, validate,
};
use serde::Serialize;
use utoipa::ToSchema;

use self::wire::{WireDocument, WirePut, WireState};
use super::{
    caller::Caller,
    error::{ApiError, Detail},
    json::{self, JsonBody},
    openapi::{DocumentChanged, Failing, NoSuchService, Protected, WithBody},
    rules::Named,
};
use crate::{auth::Action, services::Services};

pub(super) const PATH: &str = "/api/v1/services";

/// The longest document, with what stands around it.
const MAX_BYTES: usize = 128 * 1024;

/// All services, and what runs.
#[derive(Serialize, ToSchema)]
#[schema(as = ServiceDocuments)]
pub(super) struct WireDocuments {
    services: Vec<WireDocument>,
    /// What each instance runs on.
    instances: Vec<WireState>,
}

/// Lists the services with their documents, and the instances that run.
#[utoipa::path(
    get,
    path = "/api/v1/services",
    tag = "services",
    operation_id = "list_services",
    security(("token" = [])),
    responses((status = 200, description = "All of them", body = WireDocuments), Protected, Failing),
)]
pub(super) async fn list(
    State(services): State<Arc<Services>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadServices).await?;
    let kept = services.documents.list().await?;
    let states = services.documents.states().await?;
    let document = |name: &&'static str| {
        let kept = kept.iter().find(|kept| kept.service == *name);
        WireDocument::new(name, kept)
    };
    Ok(json::respond(&WireDocuments {
        services: SERVICES.iter().map(document).collect(),
        instances: states.iter().map(WireState::from).collect(),
    }))
}

/// Shows the document of a service.
#[utoipa::path(
    get,
    path = "/api/v1/services/{service}",
    tag = "services",
    operation_id = "get_service",
    params(("service" = String, Path, description = "The service's name")),
    security(("token" = [])),
    responses((status = 200, description = "The document; its version is 0 where there is none", body = WireDocument), NoSuchService, Protected, Failing),
)]
pub(super) async fn get(
    State(services): State<Arc<Services>>,
    caller: Caller,
    Named(name): Named,
) -> Result<Response, ApiError> {
    caller.may(Action::ReadServices).await?;
    let name = service(&name)?;
    let kept = services.documents.get(name).await?;
    Ok(json::respond(&WireDocument::new(name, kept.as_ref())))
}

/// Keeps a document under the next version, if it is as it was seen; services read it at once.
#[utoipa::path(
    put,
    path = "/api/v1/services/{service}",
    tag = "services",
    operation_id = "put_service",
    params(("service" = String, Path, description = "The service's name")),
    request_body = WirePut<'_>,
    security(("token" = [])),
    responses((status = 200, description = "The document", body = WireDocument), NoSuchService, DocumentChanged, WithBody, Protected, Failing),
)]
pub(super) async fn put(
    State(services): State<Arc<Services>>,
    caller: Caller,
    Named(name): Named,
    body: JsonBody<MAX_BYTES>,
) -> Result<Response, ApiError> {
    let author = caller.may(Action::WriteServices).await?;
    let name = service(&name)?;
    let wire: WirePut<'_> = body.parse()?;
    let (config, expected_version) = wire.read()?;
    validate(name, &config).map_err(unfit)?;
    let update = ConfigUpdate { service: name.to_owned(), config, expected_version };
    let kept: ServiceConfig = services.documents.put(&update, &author).await?;
    Ok(json::respond(&WireDocument::new(name, Some(&kept))))
}

/// The service that a path names.
fn service(name: &str) -> Result<&'static str, ApiError> {
    let known = SERVICES.into_iter().find(|known| *known == name);
    known.ok_or_else(|| ApiError::NoSuchService(Unfit::Service.to_string()))
}

fn unfit(unfit: Unfit) -> ApiError {
    let at = |field: String, message: String| Detail::at(field, "invalid", message);
    ApiError::Invalid(match unfit {
        Unfit::Service => return ApiError::NoSuchService(unfit.to_string()),
        Unfit::TooLarge(_) => vec![Detail::new("config", "length", unfit.to_string())],
        Unfit::Secrets(pointers) => {
            let secret = "documents hold no secrets: rename or remove it";
            pointers.into_iter().map(|pointer| at(pointer, secret.to_owned())).collect()
        }
        Unfit::Fields(problems) => {
            problems.into_iter().map(|problem| at(problem.pointer, problem.message)).collect()
        }
    })
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        let told = error.to_string();
        match error {
            ConfigError::VersionMismatch { .. } => {
                Self::DocumentChanged(format!("{told}: read it again, and decide again"))
            }
            ConfigError::Corrupt(_) => Self::Internal(told),
            ConfigError::AuditLog(_) | ConfigError::Unavailable(_) => Self::NoDatabase(told),
        }
    }
}
