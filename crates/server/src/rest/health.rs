//! `GET /healthz` and `GET /readyz`.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use headgate_persistence::{Database, SchemaVersion};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    json,
    openapi::{Condition, Late},
};
use crate::{services::Services, stores::ProbeError};

/// Whether the process answers.
#[derive(Serialize, ToSchema)]
pub(super) struct Liveness {
    status: &'static str,
}

/// Whether the server can decide.
#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    #[schema(value_type = Condition)]
    status: &'static str,
    checks: Checks,
}

/// What it needs: `ok`, or `error:` and what is wrong.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
pub(super) struct Checks {
    store: String,
    database: String,
    /// What is to be said of the version of the database's tables, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// Whether the last configuration of Envoy's domains is in force, where Envoy is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    envoy: Option<String>,
    /// What may lift limits although everything answers: `warning:` and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    eviction: Option<String>,
    /// By how much this machine's clock differs from the database's, where that is more than 5 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<String>,
}

/// The process answers. It asks nobody: restarting it would bring no store back.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "It does", body = Liveness)))]
pub(super) async fn live() -> Response {
    json::respond(&Liveness { status: "ok" })
}

/// The server can decide. Without its store it is degraded but still ready, since the
/// failure policy decides; taken out of service, it could not even do that. Without its
/// database it decides by the rules it knows, but no quota can be used.
///
/// A server that stops is not ready: balancers go elsewhere while it still answers. Nor is one that waits for the first
/// configuration from a management server.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, description = "It can", body = Readiness), (status = 503, description = "It stops, or waits for its first configuration", body = Readiness), Late))]
pub(super) async fn ready(State(services): State<Arc<Services>>) -> Response {
    let store = ask_store(&services).await.err().map(|error| error.to_string());
    // Which server it is, and why, says more than that one does not answer; a part that is away may not be the one
    // that was asked.
    let store = services.probe.outage().or(store);
    let rules = services.catalog.freshness().error.map(|error| error.to_string());
    let policies = services.quotas.catalog.freshness().error.map(|error| error.to_string());
    let database = rules.or(policies).or_else(|| unwritable(&services.database));
    let envoy = services.envoy.as_ref().map(|envoy| envoy.limits.degraded_reason());
    let envoy_is_ok = envoy.as_ref().is_none_or(Option::is_none);
    let is_starting = services.envoy.as_ref().is_some_and(|envoy| envoy.limits.is_starting());
    let clock = services.quotas.skew().map(|skew| format!("error: {skew}"));
    let is_ready = store.is_none() && database.is_none() && envoy_is_ok && clock.is_none();
    let status = match (services.is_stopping(), is_starting, is_ready) {
        (true, _, _) => "stopping",
        (false, true, _) => "starting",
        (false, false, true) => "ready",
        (false, false, false) => "degraded",
    };
    let told = |error: Option<String>| {
        error.map_or_else(|| "ok".to_owned(), |error| format!("error: {error}"))
    };
    let envoy = envoy.map(|trouble| told(trouble.map(|trouble| trouble.to_string())));
    let schema = newer_schema(&services.database);
    let eviction = services.probe.eviction().map(|risk| format!("warning: {risk}"));
    let (store, database) = (told(store), told(database));
    let checks = Checks { store, database, schema, envoy, eviction, clock };
    let mut response = json::respond(&Readiness { status, checks });
    if services.is_stopping() || is_starting {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Returns why nothing can be written, though the database may still be read.
fn unwritable(database: &Database) -> Option<String> {
    Some(format!("cannot write: {}", database.write_error()?))
}

/// Returns a warning of tables that a newer server made.
fn newer_schema(database: &Database) -> Option<String> {
    let version = database.schema_version().filter(|version| version.is_newer())?;
    let SchemaVersion { applied, known } = version;
    Some(format!("warning: version {applied} is newer than version {known} of this server"))
}

/// Asks the store, and notes whether it answered.
pub(super) async fn ask_store(services: &Services) -> Result<(), ProbeError> {
    let answer = services.probe.ask().await;
    services.metrics.store_is(answer.is_ok());
    answer
}
