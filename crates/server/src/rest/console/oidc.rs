//! `/console/oidc`: sign-in at the issuer.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, HOST, LOCATION, SET_COOKIE},
    },
    response::{IntoResponse, Response},
};
use headgate_api::Access;
use headgate_auth::{
    Actor, Auth, AuthError,
    oidc::{Oidc, OidcError, OidcTokens, SIGN_IN_TIMEOUT},
};
use headgate_console::{Console, session_cookie as cookie};
use tracing::{info, warn};

use super::session;
use crate::rest::{
    error::{self, ApiError},
    query::Query,
};

const FAILED: &str = "/console?sign_in=failed";

pub(super) async fn begin(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Some(oidc) = console.oidc() else {
        return Err(missing().await);
    };
    let secure = cookie::is_secure(&headers) || oidc.is_over_tls();
    match oidc.begin(host(&headers)).await {
        Ok(request) => {
            let kept = cookie::set_way(secure, &request.state, SIGN_IN_TIMEOUT);
            Ok(redirect(&request.location, [kept]))
        }
        Err(error) => {
            log_failure(&oidc, "start", &error);
            Ok(redirect(FAILED, []))
        }
    }
}

pub(super) async fn finish(
    State(access): State<Arc<Access>>,
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let Some(oidc) = console.oidc() else {
        return Err(missing().await);
    };
    let reader = query.lenient_reader();
    let secure = cookie::is_secure(&headers) || oidc.is_over_tls();
    let forget = cookie::set_way(secure, "", Duration::ZERO);
    let (Some(state), Some(code)) = (reader.text("state"), reader.text("code")) else {
        info!("OIDC callback without a code");
        return Ok(redirect(FAILED, [forget]));
    };
    if cookie::read_way(&headers).as_deref() != Some(state) {
        info!("OIDC callback with unknown state");
        return Ok(redirect(FAILED, [forget]));
    }
    let tokens = match oidc.finish(host(&headers), state, code).await {
        Ok(tokens) => tokens,
        Err(error) => {
            log_failure(&oidc, "complete", &error);
            return Ok(redirect(FAILED, [forget]));
        }
    };
    let auth = Arc::clone(&access.auth());
    match sign_in(&auth, &tokens).await {
        Ok((actor, until)) => {
            let (secret, session) = session::open(&access, &auth, &console, actor, until)?;
            let age = Duration::from_micros(session.ends_at.since(console.now()));
            let kept = cookie::set(secure, &secret, age);
            Ok(redirect("/console", [forget, kept]))
        }
        Err(error) => {
            info!(%error, "OIDC sign-in rejected: {error}");
            Ok(redirect(FAILED, [forget]))
        }
    }
}

/// Returns the actor of the tokens: roles can be in either of them.
async fn sign_in(
    auth: &Auth,
    tokens: &OidcTokens,
) -> Result<(Actor, Option<headgate::Timestamp>), AuthError> {
    let first = auth.sign_in(tokens.access_token.as_bytes()).await;
    match (first, &tokens.id_token) {
        (Err(_), Some(id_token)) => auth.sign_in(id_token.as_bytes()).await,
        (first, _) => first,
    }
}

/// Logs a failure, throttled: anyone may begin a sign-in.
fn log_failure(oidc: &Oidc, what: &'static str, error: &OidcError) {
    if let Some(failures) = oidc.count_failure() {
        warn!(%error, failures, "failed to {what} an OIDC sign-in: {error}");
    }
}

/// Returns the host that the browser asked for.
fn host(headers: &HeaderMap) -> &str {
    headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

async fn missing() -> ApiError {
    error::no_such_route(axum::http::Method::GET, axum::http::Uri::from_static("/console/oidc"))
        .await
}

fn redirect<const N: usize>(to: &str, cookies: [HeaderValue; N]) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static(FAILED)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for cookie in cookies {
        headers.append(SET_COOKIE, cookie);
    }
    response
}
