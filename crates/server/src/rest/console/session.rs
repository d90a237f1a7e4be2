//! `/console/session`: signing in and out, and permissions of the session.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::{IntoResponse, Response},
};
use headgate::Timestamp;
use headgate_api::Access;
use headgate_auth::{Action, Actor, Auth, AuthError, Role};
use headgate_console::{Console, session::Session, session_cookie as cookie};
use serde::{Deserialize, Serialize};

use crate::rest::{
    check::text,
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    time,
};

/// A sign-in.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
pub(super) struct WireSignIn<'a> {
    #[serde(borrow, default)]
    token: Field<'a>,
}

impl<'a> WireObject<'a> for WireSignIn<'a> {
    fn problems(self) -> Vec<Detail> {
        text("token", &self.token).err().into_iter().collect()
    }
}

/// The session and its permissions.
#[derive(Serialize)]
struct WireSession<'a> {
    signed_in: bool,
    /// True if there is a session to end; false while authentication is off.
    can_sign_out: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    /// The names of what is permitted.
    can: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<String>,
    server: &'a str,
    environment: &'a str,
    version: &'static str,
    /// True if sign-in at the issuer is configured.
    oidc: bool,
}

pub(super) async fn show(
    State(access): State<Arc<Access>>,
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if access.auth().is_off() {
        let anonymous = Actor::anonymous();
        return Ok(session_response(&console, Some(&anonymous), None));
    }
    let Some(secret) = cookie::read(&headers).filter(|_| cookie::is_ours(&headers)) else {
        return Ok(session_response(&console, None, None));
    };
    let session = console.sessions.find(&secret);
    let actor = session.as_ref().map(|session| &session.actor);
    Ok(session_response(&console, actor, session.as_ref().map(|session| session.ends_at)))
}

pub(super) async fn sign_in(
    State(access): State<Arc<Access>>,
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    body: JsonBody,
) -> Result<Response, ApiError> {
    if !cookie::is_ours(&headers) {
        return Err(AuthError::CrossSite.into());
    }
    let wire: WireSignIn<'_> = body.parse()?;
    let token = text("token", &wire.token).map_err(|wrong| ApiError::Invalid(vec![wrong]))?;
    let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) else {
        let missing = Detail::new("token", "required", "token is required".to_owned());
        return Err(ApiError::Invalid(vec![missing]));
    };
    let auth = Arc::clone(&access.auth());
    let (actor, until) = auth.sign_in(token.as_bytes()).await?;
    if let Some(earlier) = cookie::read(&headers) {
        console.sessions.close(&earlier);
    }
    let (secret, session) = open(&access, &auth, &console, actor, until)?;
    let mut response = session_response(&console, Some(&session.actor), Some(session.ends_at));
    let age = Duration::from_micros(session.ends_at.since(console.now()));
    response
        .headers_mut()
        .insert(SET_COOKIE, cookie::set(cookie::is_secure(&headers), &secret, age));
    Ok(response)
}

pub(super) async fn sign_out(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !cookie::is_ours(&headers) {
        return Err(AuthError::CrossSite.into());
    }
    if let Some(secret) = cookie::read(&headers) {
        console.sessions.close(&secret);
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(SET_COOKIE, cookie::clear(cookie::is_secure(&headers)));
    Ok(response)
}

/// Opens a session of an actor whom `auth` has authenticated.
pub(super) fn open(
    access: &Access,
    auth: &Arc<Auth>,
    console: &Console,
    actor: Actor,
    until: Option<Timestamp>,
) -> Result<(String, Session), ApiError> {
    let opened = console.sessions.open(actor, until);
    let (secret, session) =
        opened.map_err(|_| ApiError::Internal("the system gives no random bytes".to_owned()))?;
    // A reload that removed the token meanwhile did not see this session.
    if !access.still_accepts(&session.actor, auth) {
        console.sessions.close(&secret);
        return Err(AuthError::NoSession.into());
    }
    Ok((secret, session))
}

fn session_response(
    console: &Console,
    actor: Option<&Actor>,
    ends_at: Option<Timestamp>,
) -> Response {
    let permitted = |action: &Action| actor.is_some_and(|actor| actor.may(*action));
    json::respond(&WireSession {
        signed_in: actor.is_some(),
        can_sign_out: ends_at.is_some(),
        actor: actor.map(|actor| &*actor.name),
        role: actor.and_then(|actor| actor.role).map(Role::name),
        can: Action::ALL.iter().filter(|action| permitted(action)).map(|it| it.name()).collect(),
        ends_at: ends_at.map(time::text),
        server: &console.app.name,
        environment: &console.app.environment,
        version: env!("CARGO_PKG_VERSION"),
        oidc: console.oidc().is_some(),
    })
}
