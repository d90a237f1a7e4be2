//! Signing in with the password.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{
        HeaderMap,
        header::{COOKIE, SET_COOKIE},
    },
    response::{IntoResponse, Response},
};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;

use super::{
    super::{Http, body::JsonBody, error::ApiError},
    ADMIN, Sessions,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    password: String,
}

const NAME: &str = "cn_admin_session";

/// `POST /v1/admin/login`
pub(super) async fn login(
    State(http): State<Arc<Http>>,
    body: JsonBody<Login>,
) -> Result<Response, ApiError> {
    let node = &http.node;
    let expected = node.config.admin_password.as_ref().ok_or(ApiError::ADMIN_CLOSED)?;
    // Comparing hashes leaks nothing about the password by its timing.
    let [given, expected] = [&*body.value.password, expected.reveal()]
        .map(|password| digest(&SHA256, password.as_bytes()));
    if !bool::from(given.as_ref().ct_eq(expected.as_ref())) {
        node.metrics.auth_failure.with_label_values(&["admin"]).inc();
        return Err(ApiError::AUTH_FAILED);
    }
    node.metrics.auth_success.with_label_values(&["admin"]).inc();
    let now = node.seconds();
    let session = http.sessions.begin(now).map_err(|_| ApiError::INTERNAL)?;
    let cookie = cookie(&http, &session, Sessions::LIFETIME);
    let body = json!({"admin_user_id": ADMIN, "expires_at": now + Sessions::LIFETIME});
    Ok(([(SET_COOKIE, cookie)], Json(body)).into_response())
}

/// `POST /v1/admin/logout`: with or without a session.
pub(super) async fn logout(State(http): State<Arc<Http>>, headers: HeaderMap) -> Response {
    if let Some(session) = session(&headers) {
        http.sessions.end(session);
    }
    let cookie = cookie(&http, "", 0);
    ([(SET_COOKIE, cookie)], Json(json!({"status": "ok"}))).into_response()
}

/// Reads the session's cookie.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs =
        cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == NAME).map(|(_, value)| value.trim())
}

fn cookie(http: &Http, session: &str, lifetime: u64) -> String {
    // Over TLS, the cookie is limited to TLS.
    let config = &http.node.config;
    let url = config.public_url.as_deref().unwrap_or_default();
    let is_secure = config.tls.is_some() || url.starts_with("wss:") || url.starts_with("https:");
    let secure = if is_secure { "; Secure" } else { "" };
    format!(
        "{NAME}={session}; Path=/v1/admin; Max-Age={lifetime}; HttpOnly; SameSite=Strict{secure}"
    )
}
