//! The `OpenAPI` description, generated from the handlers and their types.

mod common;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use axum::{
    body::{Body, Bytes},
    http::header::CONTENT_TYPE,
    response::Response,
};
use utoipa::OpenApi;

use self::common::{RequestIds, Token, UnknownParameters};
use super::{
    actuator, audit, check, config, documents, error, events, explain, health, holders, json,
    keyed, leases, metrics, overrides, quotas, refund, reservations, reset, rules, usage,
};

/// The description as it is served. It is rendered on the first request, since it takes megabytes
/// that most servers never need.
pub(super) struct OpenApiDocument {
    metrics_path: Option<String>,
    text: OnceLock<Bytes>,
}

/// Default path of the metrics.
const METRICS: &str = "/metrics";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Headgate",
        description = "May subject S do X, at cost C, now, and if not, when?\n\n\
            Every response has an `X-Request-Id`: that of the request, or a new one. All errors have the same envelope, \
            including unknown paths (404) and methods (405, with `Allow`); \
            only errors below `/api/v1/rate-limit` have another one, which is described there.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "checks", description = "Decisions on requests of subjects. Need no token."),
        (name = "reservations", description = "Units of rate limits that are taken before their use is known. Need no token."),
        (name = "leases", description = "Places of concurrency limits, held under leases. Need no token."),
        (name = "keys", description = "Decisions by key and algorithm, without rules. Only a reset needs a token."),
        (name = "rules", description = "Rules: the limits."),
        (name = "subjects", description = "Usage, explanation and reset of subjects."),
        (name = "quotas", description = "Daily and monthly quotas: policies, usage, increments and reservations. An admitted increment or reservation is durable when it is answered."),
        (name = "audit", description = "The log of changes."),
        (name = "events", description = "Events of quotas, for the time of their retention."),
        (name = "services", description = "Documents of services that embed the guard, and the versions that instances run on."),
        (name = "config", description = "The configuration of this server. Needs the role `sys_admin`."),
        (name = "health", description = "Health of the server. Needs no token."),
        (name = "description", description = "This document. Needs no token."),
    ),
    paths(
        check::check,
        check::batch::check_batch,
        refund::refund,
        leases::acquire,
        leases::renew,
        leases::release,
        holders::list,
        holders::list_by_attributes,
        holders::end::end,
        reservations::reserve,
        reservations::get,
        reservations::changes::spend,
        reservations::changes::settle,
        reservations::changes::cancel,
        keyed::check::by_get,
        keyed::check::by_post,
        keyed::remaining::remaining,
        keyed::reset::reset,
        rules::list,
        rules::create,
        rules::apply::apply,
        rules::get,
        rules::update,
        rules::delete,
        overrides::list,
        overrides::set,
        overrides::get,
        overrides::delete,
        usage::usage,
        explain::explain,
        explain::attributes::explain,
        reset::reset,
        quotas::list,
        quotas::create,
        quotas::get,
        quotas::update,
        quotas::delete,
        quotas::check::check,
        quotas::usage::usage,
        quotas::increment::increment,
        quotas::refund::refund,
        quotas::reservations::reserve,
        quotas::reservations::get,
        quotas::reservations::changes::spend,
        quotas::reservations::changes::settle,
        quotas::reservations::changes::cancel,
        quotas::reset::reset,
        quotas::history::history,
        audit::audit,
        events::list,
        events::stream::follow,
        documents::list,
        documents::get,
        documents::put,
        documents::changes::changes,
        config::reload,
        health::live,
        health::ready,
        metrics::render,
        actuator::health,
        actuator::info,
        actuator::prometheus,
        show,
    ),
    // utoipa does not find schemas that are only used in shared responses.
    components(schemas(
        keyed::WireDecision<'_>,
        keyed::WireRemaining<'_>,
        check::WireDetailed<'_>,
        error::KeyedEnvelope<'_>,
    )),
    modifiers(&Token, &UnknownParameters, &RequestIds),
)]
struct Surface;

/// Builds the description, with the configured path of the metrics.
pub(crate) fn document(metrics_path: Option<&str>) -> utoipa::openapi::OpenApi {
    let mut document = Surface::openapi();
    if metrics_path.is_none() {
        document.paths.paths.remove(actuator::PROMETHEUS);
    }
    if metrics_path != Some(METRICS) {
        let item = document.paths.paths.remove(METRICS);
        let moved = metrics_path.map(str::to_owned).zip(item);
        document.paths.paths.extend(moved);
    }
    document
}

/// Shows this description.
#[utoipa::path(
    get,
    path = "/api-docs/openapi.json",
    tag = "description",
    operation_id = "describe",
    responses((status = 200, description = "An OpenAPI 3.1 document", body = Object)),
)]
pub(super) fn show(text: &Bytes) -> Response {
    let mut response = Response::new(Body::from(text.clone()));
    response.headers_mut().insert(CONTENT_TYPE, json::CONTENT_TYPE);
    response
}

// === impl OpenApiDocument ===

impl OpenApiDocument {
    pub(super) fn new(metrics_path: Option<&str>) -> Self {
        Self { metrics_path: metrics_path.map(str::to_owned), text: OnceLock::new() }
    }

    pub(super) fn show(&self) -> Response {
        let describe = || Bytes::from(json::to_vec(&document(self.metrics_path.as_deref())));
        show(self.text.get_or_init(describe))
    }
}
