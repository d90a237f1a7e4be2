//! `GET /healthz` and `GET /readyz`.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use headgate_api::Operations;
use headgate_persistence::{Database, SchemaVersion};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    json,
    schemas::{Condition, Late},
};
use crate::reload::Reloader;

/// Liveness.
#[derive(Serialize, ToSchema)]
pub(super) struct Liveness {
    status: &'static str,
}

/// Readiness.
#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    #[schema(value_type = Condition)]
    status: &'static str,
    checks: Checks,
}

/// State of dependencies: `ok`, or `error:` and the cause.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadinessChecks)]
pub(super) struct Checks {
    store: String,
    database: String,
    /// A warning about the version of the database's tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// State of the Envoy configuration; left out if the service for Envoy is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    envoy: Option<String>,
    /// Warning that Redis may evict counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    eviction: Option<String>,
    /// Warning about certificates that expire soon or could not be reloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<String>,
    /// Difference between this machine's clock and the database's, if it is more than 5 seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<String>,
    /// Warning that the configuration has changed and needs a restart, or that the last reload was
    /// refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<String>,
}

/// The process is alive. It depends on no store: a restart would not repair one.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "The process is alive", body = Liveness)))]
pub(super) async fn live() -> Response {
    json::respond(&Liveness { status: "ok" })
}

/// Shows if the server is ready. Without its store it is degraded but ready, since the failure
/// policy decides. Without its database it decides by the loaded rules, but no quota can be used.
///
/// A server that is stopping is not ready, so that load balancers use others while it still answers.
/// Nor is one that waits for the first configuration from a management server.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = 200, description = "The server is ready", body = Readiness), (status = 503, description = "The server is stopping, or waits for its first configuration", body = Readiness), Late))]
pub(super) async fn ready(
    State(operations): State<Arc<Operations>>,
    State(reloader): State<Arc<Reloader>>,
) -> Response {
    let store = operations.probe.ask().await.err().map(|error| error.to_string());
    // The store's own report names the server that is down; a probe may have reached another one.
    let store = operations.probe.outage().or(store);
    let database = operations.read_error().or_else(|| unwritable(&operations.database));
    let envoy = operations.envoy.as_ref().map(|envoy| envoy.degraded_reason());
    let envoy_is_ok = envoy.as_ref().is_none_or(Option::is_none);
    let is_starting = operations.envoy.as_ref().is_some_and(|envoy| envoy.is_starting());
    let clock = operations.quotas.skew().map(|skew| format!("error: {skew}"));
    let is_ready = store.is_none() && database.is_none() && envoy_is_ok && clock.is_none();
    let status = match (operations.is_stopping(), is_starting, is_ready) {
        (true, _, _) => "stopping",
        (false, true, _) => "starting",
        (false, false, true) => "ready",
        (false, false, false) => "degraded",
    };
    let status_of = |error: Option<String>| {
        error.map_or_else(|| "ok".to_owned(), |error| format!("error: {error}"))
    };
    let envoy = envoy.map(|trouble| status_of(trouble.map(|trouble| trouble.to_string())));
    let schema = newer_schema(&operations.database);
    let eviction = operations.probe.eviction().map(|risk| format!("warning: {risk}"));
    let tls = operations.tls_warning().map(|warning| format!("warning: {warning}"));
    let (store, database) = (status_of(store), status_of(database));
    let config = reloader.status().warning().map(|warning| format!("warning: {warning}"));
    let checks = Checks { store, database, schema, envoy, eviction, tls, clock, config };
    let mut response = json::respond(&Readiness { status, checks });
    if operations.is_stopping() || is_starting {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// Returns the error of writes, which may fail while reads succeed.
fn unwritable(database: &Database) -> Option<String> {
    Some(format!("cannot write: {}", database.write_error()?))
}

/// Returns a warning if a newer version of the server migrated the database.
fn newer_schema(database: &Database) -> Option<String> {
    let version = database.schema_version().filter(|version| version.is_newer())?;
    let SchemaVersion { applied, known } = version;
    Some(format!("warning: version {applied} is newer than version {known} of this server"))
}
