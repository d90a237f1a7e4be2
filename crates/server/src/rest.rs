//! The HTTP surface. The routes below are its table of contents.

mod actuator;
mod audit;
mod caller;
pub(crate) mod check;
mod client;
mod console;
mod docs;
mod documents;
mod error;
mod events;
mod explain;
mod field;
mod health;
mod json;
mod keyed;
mod limit_headers;
mod metrics;
pub(crate) mod openapi;
mod page;
mod query;
mod quotas;
mod reset;
mod root;
mod routes;
mod rules;
mod surface;
mod text;
mod time;
mod usage;

use std::sync::Arc;

use axum::routing::{delete, get, post};

use self::routes::Routes;

pub(crate) use self::surface::Surface;

/// Which handler answers what; metrics are where the operator wants them, if at all, and so is the
/// console.
fn routes(metrics_path: Option<&str>, console: bool) -> Routes {
    let document = Arc::new(openapi::Document::new(metrics_path));
    let routes = Routes::default()
        .route(check::PATH, post(check::check))
        .route("/api/v1/ratelimit/check/batch", post(check::check_batch))
        .route("/api/v1/ratelimit/rules", get(rules::list).post(rules::create).put(rules::apply))
        .route(
            "/api/v1/ratelimit/rules/{id}",
            get(rules::get).put(rules::update).delete(rules::delete),
        )
        .route("/api/v1/ratelimit/usage", get(usage::usage))
        .route("/api/v1/ratelimit/explain", get(explain::explain))
        .route("/api/v1/ratelimit/reset", post(reset::reset))
        .route("/api/v1/ratelimit/audit", get(audit::audit))
        .route(events::PATH, get(events::list))
        .route(events::stream::PATH, get(events::stream::follow))
        .route(documents::PATH, get(documents::list))
        .route("/api/v1/services/{service}", get(documents::get).put(documents::put))
        .route("/api/v1/services/{service}/changes", get(documents::changes::changes))
        .route(keyed::check::PATH, get(keyed::check::by_get).post(keyed::check::by_post))
        .route(keyed::remaining::PATH, get(keyed::remaining::remaining))
        .route(keyed::reset::PATH, delete(keyed::reset::reset))
        .route(quotas::PATH, get(quotas::list).post(quotas::create))
        .route("/api/v1/quotas/{id}", get(quotas::get).put(quotas::update).delete(quotas::delete))
        .route("/api/v1/quotas/{id}/check", post(quotas::check::check))
        .route("/api/v1/quotas/{id}/usage", get(quotas::usage::usage))
        .route(quotas::increment::PATH, post(quotas::increment::increment))
        .route("/api/v1/quotas/{id}/usage/reset", post(quotas::reset::reset))
        .route("/api/v1/quotas/{id}/history", get(quotas::history::history))
        .route("/api-docs/openapi.json", get(move || async move { document.show() }))
        .route("/api-docs", get(docs::page))
        .route("/api-docs/", get(docs::page))
        .route("/api-docs/docs.js", get(docs::script))
        .route("/api-docs/docs.css", get(docs::style))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route(actuator::HEALTH, get(actuator::health))
        .route(actuator::INFO, get(actuator::info));
    let routes = if console {
        console::routes(routes).route("/", get(root::console))
    } else {
        routes.route("/", get(root::docs))
    };
    match metrics_path {
        Some(path) => routes
            .route(path, get(metrics::render))
            .route(actuator::PROMETHEUS, get(actuator::prometheus)),
        None => routes,
    }
}
