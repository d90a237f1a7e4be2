//! `envoy.service.ratelimit.v3.RateLimitService`: from Envoy's messages to the use case and back.

mod headers;
mod metadata;
mod wire;

use std::sync::Arc;

use headgate_auth::Action;
use tonic::{Request, Response, Status};

use self::wire::question;
use super::{
    caller,
    error::CallError,
    proto::envoy::service::ratelimit::v3::{
        RateLimitRequest, RateLimitResponse, rate_limit_service_server::RateLimitService,
    },
};
use crate::{
    config::ResponseHeaders,
    envoy::{AskError, EnvoyLimits},
    services::Services,
};

/// Answers Envoy, where the operator wants that.
pub(crate) struct EnvoySurface {
    pub(crate) limits: EnvoyLimits,
    pub(crate) needs_token: bool,
    pub(crate) headers: ResponseHeaders,
    /// Whether answers carry metadata.
    pub(crate) dynamic_metadata: bool,
}

/// The use case, as Envoy calls it.
pub(super) struct EnvoyHandlers(Arc<Services>);

impl EnvoyHandlers {
    pub(super) const fn new(services: Arc<Services>) -> Self {
        Self(services)
    }
}

#[tonic::async_trait]
impl RateLimitService for EnvoyHandlers {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let Some(envoy) = &self.0.envoy else {
            return Err(CallError::NoSuchMethod.into());
        };
        if envoy.needs_token {
            caller::may(&self.0, &request, Action::LimitRequests).await?;
        }
        let question = question(request.get_ref())?;
        let verdict = envoy.limits.decide(&question).await.map_err(CallError::from)?;
        let mut answer = wire::answer(&verdict, envoy.headers);
        if envoy.dynamic_metadata {
            answer.dynamic_metadata = Some(metadata::of(request.get_ref(), &verdict));
        }
        Ok(Response::new(answer))
    }
}

impl From<AskError> for CallError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::NoConfiguration => Self::NotConfigured,
            AskError::Store(cause) => Self::store(&cause),
            AskError::Batch(cause) => Self::Internal(cause.to_string()),
        }
    }
}
