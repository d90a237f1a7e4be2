//! `GET /actuator/health`, `/actuator/info` and `/actuator/prometheus`: `/readyz` and `/metrics`
//! under the paths and in the format of Spring Boot.

use std::sync::Arc;

use axum::{extract::State, http::HeaderMap, response::Response};
use headgate::FailMode;
use headgate_api::Operations;
use headgate_stores::StoreKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    error::{ApiError, Envelope},
    json,
    keyed::KeyedApi,
    metrics,
    schemas::Late,
};

pub(super) const HEALTH: &str = "/actuator/health";
pub(super) const INFO: &str = "/actuator/info";
pub(super) const PROMETHEUS: &str = "/actuator/prometheus";

/// State of the limiter.
#[derive(Serialize, ToSchema)]
#[schema(as = ActuatorHealth)]
struct Health {
    /// `UP`, or `DEGRADED` while the failure policy decides.
    status: &'static str,
    components: Components,
}

/// Dependencies.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActuatorComponents)]
struct Components {
    /// Left out where counters are in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    redis: Option<Redis>,
    rate_limiter: RateLimiter,
}

/// State of Redis.
#[derive(Serialize, ToSchema)]
#[schema(as = ActuatorRedis)]
struct Redis {
    /// `UP` or `DOWN`.
    status: &'static str,
}

/// The limiter itself.
#[derive(Serialize, ToSchema)]
#[schema(as = ActuatorRateLimiter)]
struct RateLimiter {
    /// `UP`, or `DEGRADED` while the failure policy decides.
    status: &'static str,
    details: Details,
}

/// Settings.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActuatorDetails)]
struct Details {
    /// The store: `memory` or `redis`.
    store: &'static str,
    /// Algorithm of requests that name none.
    default_algorithm: &'static str,
    /// Decides while the store cannot.
    #[schema(value_type = super::schemas::FailMode)]
    fail_mode: &'static str,
}

/// Name and version of the server.
#[derive(Serialize, ToSchema)]
#[schema(as = ActuatorInfo)]
struct Info<'a> {
    app: App<'a>,
}

/// Its name and version, as configured.
#[derive(Serialize, ToSchema)]
#[schema(as = ActuatorApp)]
struct App<'a> {
    name: &'a str,
    version: &'a str,
}

/// Shows the state of the limiter. The status is 200 even if the store is down: a server that is taken out of service could not apply the failure policy.
#[utoipa::path(get, path = "/actuator/health", tag = "health", operation_id = "actuator_health", responses((status = 200, description = "State of the limiter", body = Health), Late))]
pub(super) async fn health(
    State(operations): State<Arc<Operations>>,
    State(keyed): State<Arc<KeyedApi>>,
) -> Response {
    let up = operations.probe.ask().await.is_ok();
    let status = if up { "UP" } else { "DEGRADED" };
    let redis = (operations.store == StoreKind::Redis)
        .then_some(Redis { status: if up { "UP" } else { "DOWN" } });
    let settings = keyed.settings();
    let fail_mode: FailMode = settings.limits.fail_mode();
    let details = Details {
        store: operations.store.name(),
        default_algorithm: settings.default_algorithm.name(),
        fail_mode: fail_mode.name(),
    };
    let rate_limiter = RateLimiter { status, details };
    json::respond(&Health { status, components: Components { redis, rate_limiter } })
}

/// Name and version of the server.
#[utoipa::path(get, path = "/actuator/info", tag = "health", operation_id = "actuator_info", responses((status = 200, description = "Name and version", body = Info<'_>)))]
pub(super) async fn info(State(operations): State<Arc<Operations>>) -> Response {
    let app = &operations.app;
    json::respond(&Info { app: App { name: &app.name, version: &app.version } })
}

/// Shows all metrics, as at the configured path.
#[utoipa::path(
    get,
    path = "/actuator/prometheus",
    tag = "health",
    operation_id = "actuator_prometheus",
    responses(
        (
            status = 200,
            description = "The metrics",
            content(
                (String = "text/plain; version=0.0.4; charset=utf-8"),
                (String = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
            ),
        ),
        (status = 500, description = "An internal error; the server's log has the cause", body = Envelope<'_>),
        Late,
    ),
)]
pub(super) async fn prometheus(
    operations: State<Arc<Operations>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    metrics::render(operations, headers).await
}
