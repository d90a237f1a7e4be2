//! `/console`: the pages of the console, and requests that only they need. For the rest they use
//! the API.

mod oidc;
mod overview;
mod preview;
mod session;
mod trial;

use axum::{
    http::{HeaderMap, Method, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use headgate_console::{OIDC_CALLBACK, assets};

use super::{error, path::PathParam, routes::Routes};

pub(super) fn routes() -> Routes {
    Routes::default()
        .route("/console", get(page))
        .route("/console/", get(page))
        .route("/console/assets/{name}", get(asset))
        .route(
            "/console/session",
            get(session::show).post(session::sign_in).delete(session::sign_out),
        )
        .route("/console/oidc", get(oidc::begin))
        .route(OIDC_CALLBACK, get(oidc::finish))
        .route("/console/overview", get(overview::overview))
        .route("/console/preview", post(preview::preview))
        .route("/console/try", post(trial::trial))
}

async fn page(headers: HeaderMap) -> Response {
    assets::page(&headers)
}

async fn asset(
    PathParam(name): PathParam,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    match assets::find(&name, &headers) {
        Some(file) => file,
        None => error::no_such_route(method, uri).await.into_response(),
    }
}
