//! The HTTP surface. The routes below are its table of contents.

mod check;
mod error;
mod health;
mod json;
mod metrics;
mod request_id;
mod routes;
mod surface;
mod window;

use axum::routing::{get, post};
use headgate::Limiter;

use self::routes::Routes;
use crate::{metrics::Metrics, rule::DefaultRule, stores::Probe};

pub(crate) use self::surface::Surface;

/// What handlers need.
pub(crate) struct Rest {
    pub(crate) rule: DefaultRule,
    pub(crate) limiter: Limiter,
    pub(crate) probe: Probe,
    pub(crate) metrics: Metrics,
}

fn routes() -> Routes {
    Routes::default()
        .route("/api/v1/ratelimit/check", post(check::check))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::render))
}
