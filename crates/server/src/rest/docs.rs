//! `GET /api-docs`: the API documentation as a page, without external resources.

use axum::{
    body::Body,
    http::{
        HeaderValue,
        header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::Response,
};

/// Content security policy: only files of this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

pub(super) async fn page() -> Response {
    respond("text/html; charset=utf-8", include_str!("docs/docs.html"))
}

pub(super) async fn script() -> Response {
    respond("text/javascript; charset=utf-8", include_str!("docs/docs.js"))
}

pub(super) async fn style() -> Response {
    respond("text/css; charset=utf-8", include_str!("docs/docs.css"))
}

fn respond(content_type: &'static str, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
