//! Who asks: the token or the cookie they bring, and the name of their request.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, header::AUTHORIZATION, request::Parts},
};
use headgate_auth::{Action, Actor, AuthError};
use headgate_ratelimit::Author;

use super::{console, error::ApiError};
use crate::{request_id::RequestId, services::Services};

/// Somebody who asks for something that not everybody may have.
pub(super) struct Caller {
    services: Arc<Services>,
    authorization: Option<HeaderValue>,
    /// The session that a browser's cookie names, where there is no token.
    cookie: Option<Result<String, AuthError>>,
    request_id: RequestId,
}

impl Caller {
    /// Whoever it is, if they may do `action`.
    pub(super) async fn may(&self, action: Action) -> Result<Author, ApiError> {
        let actor = self.actor(action).await?;
        Ok(self.services.author(actor, self.request_id.as_str()))
    }

    /// The same, with the role.
    pub(super) async fn actor(&self, action: Action) -> Result<Actor, ApiError> {
        let auth = &self.services.auth;
        if let (Some(cookie), false) = (&self.cookie, auth.is_off()) {
            let session = self.services.console.sessions.find(cookie.as_deref().map_err(|e| *e)?);
            return Ok(session.ok_or(AuthError::NoSession)?.actor.permitted(action)?);
        }
        let token = self.authorization.as_ref().map(HeaderValue::as_bytes);
        Ok(auth.authorize(token, action).await?)
    }
}

impl FromRequestParts<Arc<Services>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Infallible> {
        let request_id = parts.extensions.get().cloned();
        let authorization = parts.headers.get(AUTHORIZATION).cloned();
        let cookie = match authorization {
            None => console::presented(&parts.headers),
            Some(_) => None,
        };
        Ok(Self {
            services: Arc::clone(services),
            authorization,
            cookie,
            request_id: request_id.unwrap_or_else(|| RequestId::of(&parts.headers)),
        })
    }
}
