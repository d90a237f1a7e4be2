//! `/console`: the pages of the console, and requests that only they need. For the rest they use
//! the API.

mod assets;
mod oidc;
mod overview;
mod preview;
mod session;

use axum::routing::{get, post};

use super::routes::Routes;

/// Adds the console.
pub(super) fn routes(routes: Routes) -> Routes {
    routes
        .route("/console", get(assets::page))
        .route("/console/", get(assets::page))
        .route("/console/assets/{name}", get(assets::asset))
        .route(
            "/console/session",
            get(session::show).post(session::sign_in).delete(session::sign_out),
        )
        .route("/console/oidc", get(oidc::begin))
        .route(crate::console::OIDC_CALLBACK, get(oidc::finish))
        .route("/console/overview", get(overview::overview))
        .route("/console/preview", post(preview::preview))
}
