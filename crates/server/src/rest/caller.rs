//! Who asks: the token they bring and the name of their request.

use std::{convert::Infallible, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, header::AUTHORIZATION, request::Parts},
};
use headgate_ratelimit::Author;

use super::error::ApiError;
use crate::{auth::Action, request_id::RequestId, services::Services};

/// Somebody who asks for something that not everybody may have.
pub(super) struct Caller {
    services: Arc<Services>,
    authorization: Option<HeaderValue>,
    request_id: RequestId,
}

impl Caller {
    /// Whoever it is, if they may do `action`.
    pub(super) async fn may(&self, action: Action) -> Result<Author, ApiError> {
        let token = self.authorization.as_ref().map(HeaderValue::as_bytes);
        let actor = self.services.auth.authorize(token, action).await?;
        Ok(self.services.author(actor, self.request_id.as_str()))
    }
}

impl FromRequestParts<Arc<Services>> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        services: &Arc<Services>,
    ) -> Result<Self, Infallible> {
        let request_id = parts.extensions.get().cloned();
        Ok(Self {
            services: Arc::clone(services),
            authorization: parts.headers.get(AUTHORIZATION).cloned(),
            request_id: request_id.unwrap_or_else(|| RequestId::of(&parts.headers)),
        })
    }
}
