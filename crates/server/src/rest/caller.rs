//! The caller of a request: a token, a session cookie or a client certificate, and the request's id.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{HeaderMap, HeaderValue, header::AUTHORIZATION, request::Parts},
};
use headgate_api::{Access, request_id::RequestId};
use headgate_auth::{Action, Actor, AuthError, Credentials};
use headgate_console::{
    Console,
    session::{Session, Sessions},
    session_cookie,
};
use headgate_ratelimit::Author;
use headgate_serve::ClientCertificate;
use tokio::sync::watch;

use super::error::ApiError;

/// The caller of a request that needs authorization.
#[derive(Clone)]
pub(super) struct Caller {
    access: Arc<Access>,
    console: Arc<Console>,
    authorization: Option<HeaderValue>,
    /// The session secret of a browser, where there is no token.
    cookie: Option<Result<String, AuthError>>,
    /// The client certificate, where there is neither; an error if the request may come from
    /// another site: browsers send certificates with any request.
    certificate: Option<Result<ClientCertificate, AuthError>>,
    request_id: RequestId,
}

impl Caller {
    #[cfg(test)]
    pub(super) fn without_token(access: Arc<Access>, console: Arc<Console>) -> Self {
        let request_id = RequestId::generate();
        let (authorization, cookie, certificate) = (None, None, None);
        Self { access, console, authorization, cookie, certificate, request_id }
    }

    #[cfg(test)]
    pub(super) fn with_session(self, secret: String) -> Self {
        Self { cookie: Some(Ok(secret)), ..self }
    }

    /// The author of a change, if the caller may do `action`.
    pub(super) async fn may(&self, action: Action) -> Result<Author, ApiError> {
        let actor = self.actor(action).await?;
        Ok(self.access.author(actor, self.request_id.as_str()))
    }

    /// Receives a notification whenever the caller may have lost its access.
    pub(super) fn access_replaced(&self) -> watch::Receiver<()> {
        self.access.subscribe()
    }

    /// The caller with the role, if it may do `action`.
    pub(super) async fn actor(&self, action: Action) -> Result<Actor, ApiError> {
        self.actor_by(action, Sessions::find).await
    }

    /// Returns true if the caller may still do `action`. This is no use of its session.
    pub(super) async fn still_may(&self, action: Action) -> bool {
        self.actor_by(action, Sessions::peek).await.is_ok()
    }

    async fn actor_by(
        &self,
        action: Action,
        find: fn(&Sessions, &str) -> Option<Session>,
    ) -> Result<Actor, ApiError> {
        let auth = self.access.auth();
        if let (Some(cookie), false) = (&self.cookie, auth.is_off()) {
            let session = find(&self.console.sessions, cookie.as_deref().map_err(|e| *e)?);
            return Ok(session.ok_or(AuthError::NoSession)?.actor.permitted(action)?);
        }
        let credentials = Credentials {
            authorization: self.authorization.as_ref().map(HeaderValue::as_bytes),
            certificate: match &self.certificate {
                Some(Err(error)) if !auth.is_off() => return Err((*error).into()),
                Some(Ok(certificate)) => Some(certificate),
                Some(Err(_)) | None => None,
            },
        };
        Ok(auth.authorize(credentials, action).await?)
    }
}

impl<S> FromRequestParts<S> for Caller
where
    Arc<Access>: FromRef<S>,
    Arc<Console>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let request_id = parts.extensions.get().cloned();
        let authorization = authorization(&parts.headers);
        let cookie = match authorization {
            None => session_cookie::presented(&parts.headers),
            Some(_) => None,
        };
        let certificate = match (&authorization, &cookie) {
            (None, None) => parts.extensions.get::<ClientCertificate>().map(|certificate| {
                if session_cookie::is_cross_site(&parts.headers) {
                    Err(AuthError::CrossSite)
                } else {
                    Ok(certificate.clone())
                }
            }),
            _ => None,
        };
        Ok(Self {
            access: FromRef::from_ref(state),
            console: FromRef::from_ref(state),
            authorization,
            cookie,
            certificate,
            request_id: request_id.unwrap_or_else(|| RequestId::of(&parts.headers)),
        })
    }
}

/// Returns the header `authorization`. Several are joined as RFC 9110 says, which is no valid token:
/// a proxy may have verified another one than the first.
fn authorization(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let first = all.next()?;
    if all.next().is_none() {
        return Some(first.clone());
    }
    let all: Vec<&[u8]> =
        headers.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes).collect();
    Some(HeaderValue::from_bytes(&all.join(&b", "[..])).unwrap_or(HeaderValue::from_static("?")))
}
