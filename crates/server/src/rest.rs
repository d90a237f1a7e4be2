//! The HTTP surface. The routes below are its table of contents.

mod actuator;
mod audit;
mod caller;
mod check;
mod client;
mod config;
mod console;
mod docs;
mod documents;
mod entity_tag;
mod error;
mod events;
mod explain;
mod fast_path;
mod field;
mod health;
mod holders;
mod idempotency;
mod json;
mod json_body;
mod keyed;
mod leases;
mod limit_headers;
mod metrics;
pub(crate) mod openapi;
mod overrides;
mod page;
mod path;
mod query;
mod quotas;
mod refund;
mod request_metrics;
mod reservations;
mod reset;
mod root;
mod routes;
mod rules;
mod schemas;
mod state;
mod surface;
mod text_buffer;
mod time;
mod unique_json;
mod usage;

use std::sync::Arc;

use axum::{
    http::Method,
    routing::{delete, get, post},
};

use self::{error::ErrorFormat, routes::Routes};

pub(crate) use self::{
    keyed::{KeyedApi, KeyedSettings},
    request_metrics::RequestMetrics,
    state::UseCases,
    surface::{Around, Surface},
};

/// Methods that read query parameters; others refuse them.
const BY_GET: &[Method] = &[Method::GET];
const BY_POST: &[Method] = &[Method::POST];
const BY_BOTH: &[Method] = &[Method::GET, Method::POST];

/// The route table. The hottest routes are answered by [`fast_path`], which calls the same handlers.
fn routes(metrics_path: Option<&str>, console: bool) -> Routes {
    let routes = rate_limits()
        .merge(keys().errors(ErrorFormat::Keyed))
        .merge(quotas().errors(ErrorFormat::Quota))
        // Unknown paths below it have codes of quotas, too.
        .unknown_below(quotas::PATH, ErrorFormat::Quota)
        .unknown_below(events::PATH, ErrorFormat::Quota)
        .merge(services())
        .merge(config())
        .merge(health(metrics_path))
        .merge(docs(metrics_path));
    if console {
        routes.merge(console::routes().route("/", get(root::console)).accepting_queries())
    } else {
        routes.merge(Routes::default().route("/", get(root::docs)).accepting_queries())
    }
}

fn rate_limits() -> Routes {
    Routes::default()
        .route(check::PATH, post(check::check))
        .route("/api/v1/ratelimit/check/batch", post(check::check_batch))
        .route(refund::PATH, post(refund::refund))
        .route(leases::ACQUIRE, post(leases::acquire))
        .route(leases::RENEW, post(leases::renew))
        .route(leases::RELEASE, post(leases::release))
        .route(holders::PATH, get(holders::list).post(holders::list_by_attributes))
        .reading_queries(BY_BOTH)
        .route(holders::end::PATH, post(holders::end::end))
        .route(reservations::PATH, post(reservations::reserve))
        .route(reservations::ONE, get(reservations::get))
        .route(reservations::changes::USE, post(reservations::changes::spend))
        .route(reservations::changes::SETTLE, post(reservations::changes::settle))
        .route(reservations::changes::CANCEL, post(reservations::changes::cancel))
        .route("/api/v1/ratelimit/rules", get(rules::list).post(rules::create).put(rules::apply))
        .reading_queries(BY_GET)
        .route(
            "/api/v1/ratelimit/rules/{id}",
            get(rules::get).put(rules::update).delete(rules::delete),
        )
        .route(overrides::PATH, get(overrides::list).put(overrides::set))
        .reading_queries(BY_GET)
        .route(overrides::ONE, get(overrides::get).delete(overrides::delete))
        .route("/api/v1/ratelimit/usage", get(usage::usage))
        .reading_queries(BY_GET)
        .route(
            "/api/v1/ratelimit/explain",
            get(explain::explain).post(explain::attributes::explain),
        )
        .reading_queries(BY_GET)
        .route("/api/v1/ratelimit/reset", post(reset::reset))
        .route("/api/v1/ratelimit/audit", get(audit::audit))
        .reading_queries(BY_GET)
}

fn keys() -> Routes {
    Routes::default()
        .route(keyed::check::PATH, get(keyed::check::by_get).post(keyed::check::by_post))
        .route(keyed::remaining::PATH, get(keyed::remaining::remaining))
        .route(keyed::reset::PATH, delete(keyed::reset::reset))
        .accepting_queries()
}

fn quotas() -> Routes {
    Routes::default()
        .route(quotas::PATH, get(quotas::list).post(quotas::create))
        .reading_queries(BY_GET)
        .route("/api/v1/quotas/{id}", get(quotas::get).put(quotas::update).delete(quotas::delete))
        .route("/api/v1/quotas/{id}/check", post(quotas::check::check))
        .route("/api/v1/quotas/{id}/usage", get(quotas::usage::usage))
        .slow_route(
            quotas::increment::PATH,
            post(quotas::increment::increment),
            quotas::increment::unconfirmed,
        )
        .slow_route(
            quotas::refund::PATH,
            post(quotas::refund::refund),
            quotas::increment::unconfirmed,
        )
        .slow_route(
            quotas::reservations::PATH,
            post(quotas::reservations::reserve),
            quotas::increment::unconfirmed,
        )
        .route(quotas::reservations::ONE, get(quotas::reservations::get))
        .slow_route(
            quotas::reservations::changes::USE,
            post(quotas::reservations::changes::spend),
            quotas::increment::unconfirmed,
        )
        .slow_route(
            quotas::reservations::changes::SETTLE,
            post(quotas::reservations::changes::settle),
            quotas::increment::unconfirmed,
        )
        .slow_route(
            quotas::reservations::changes::CANCEL,
            post(quotas::reservations::changes::cancel),
            quotas::increment::unconfirmed,
        )
        .route("/api/v1/quotas/{id}/usage/reset", post(quotas::reset::reset))
        .route("/api/v1/quotas/{id}/history", get(quotas::history::history))
        .reading_queries(BY_GET)
        .route(events::PATH, get(events::list))
        .reading_queries(BY_GET)
        .route(events::stream::PATH, get(events::stream::follow))
        .reading_queries(BY_GET)
}

fn services() -> Routes {
    Routes::default()
        .route(documents::PATH, get(documents::list))
        .route("/api/v1/services/{service}", get(documents::get).put(documents::put))
        .route("/api/v1/services/{service}/changes", get(documents::changes::changes))
}

fn config() -> Routes {
    Routes::default().route(config::PATH, post(config::reload)).reading_queries(BY_POST)
}

/// Health and metrics; the path of the metrics is configurable.
fn health(metrics_path: Option<&str>) -> Routes {
    let routes = Routes::default()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route(actuator::HEALTH, get(actuator::health))
        .route(actuator::INFO, get(actuator::info));
    match metrics_path {
        Some(path) => routes
            .route(path, get(metrics::render))
            .route(actuator::PROMETHEUS, get(actuator::prometheus)),
        None => routes,
    }
    .accepting_queries()
}

fn docs(metrics_path: Option<&str>) -> Routes {
    let document = Arc::new(openapi::OpenApiDocument::new(metrics_path));
    Routes::default()
        .route("/api-docs/openapi.json", get(move || async move { document.show() }))
        .route("/api-docs", get(docs::page))
        .route("/api-docs/", get(docs::page))
        .route("/api-docs/docs.js", get(docs::script))
        .route("/api-docs/docs.css", get(docs::style))
        .accepting_queries()
}
