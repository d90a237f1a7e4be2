//! `GET /`: redirects browsers to the console or the API documentation.

use axum::{
    http::{HeaderValue, StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
};

/// Redirects to the console.
pub(super) async fn console() -> Response {
    lead_to("/console")
}

/// Redirects to the API documentation, if the console is off.
pub(super) async fn docs() -> Response {
    lead_to("/api-docs")
}

fn lead_to(page: &'static str) -> Response {
    let text = format!(
        "headgate {}: see {page}, /api-docs/openapi.json and /readyz\n",
        env!("CARGO_PKG_VERSION")
    );
    let mut response = (StatusCode::SEE_OTHER, text).into_response();
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(page));
    response
}
