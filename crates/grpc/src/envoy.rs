//! `envoy.service.ratelimit.v3.RateLimitService`: converts Envoy's messages for the use case.

mod headers;
mod metadata;
mod wire;

use std::sync::Arc;

use arc_swap::ArcSwap;
use headgate_api::Access;
use headgate_auth::Action;
use headgate_envoy::{EnvoyError, EnvoyLimits, ResponseHeaders, Settings, SourceControl};
use tonic::{Request, Response, Status};

use super::{
    caller,
    error::{CallError, Violation},
    proto::envoy::service::ratelimit::v3::{
        RateLimitRequest, RateLimitResponse, rate_limit_service_server::RateLimitService,
    },
};

/// The use case, and how it is exposed to Envoy. Clones share it.
#[derive(Clone)]
pub struct EnvoySurface {
    /// The limits of the domains.
    pub limits: Arc<EnvoyLimits>,
    settings: Arc<ArcSwap<EnvoySettings>>,
    /// The source of the domains.
    source: SourceControl,
}

/// What the configuration says about Envoy's requests. A reload replaces it as a whole.
#[derive(Clone, Copy)]
pub struct EnvoySettings {
    /// Settings of all domains.
    pub limits: Settings,
    /// True if calls need a token.
    pub requires_token: bool,
    /// Headers to add to responses.
    pub headers: ResponseHeaders,
    /// Adds metadata to responses.
    pub dynamic_metadata: bool,
}

/// The handler of Envoy's requests.
pub(super) struct EnvoyHandlers {
    /// `None` if it is disabled.
    pub(super) envoy: Option<EnvoySurface>,
    pub(super) access: Arc<Access>,
}

// === impl EnvoySurface ===

impl EnvoySurface {
    /// Exposes `limits`, whose domains come from `source`.
    pub fn new(limits: Arc<EnvoyLimits>, source: SourceControl, settings: EnvoySettings) -> Self {
        Self { limits, settings: Arc::new(ArcSwap::from_pointee(settings)), source }
    }

    /// Returns the control of the source of the domains.
    pub const fn source(&self) -> &SourceControl {
        &self.source
    }

    /// Replaces the settings.
    pub fn replace(&self, settings: EnvoySettings) {
        self.settings.store(Arc::new(settings));
    }
}

#[tonic::async_trait]
impl RateLimitService for EnvoyHandlers {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let Some(envoy) = &self.envoy else {
            return Err(CallError::NoSuchMethod.into());
        };
        let settings = **envoy.settings.load();
        if settings.requires_token {
            caller::may(&self.access, &request, Action::LimitRequests).await?;
        }
        let question = wire::request(request.get_ref())?;
        let verdict =
            envoy.limits.decide(&question, settings.limits).await.map_err(CallError::from)?;
        let mut response = wire::response(&verdict, settings.headers);
        if settings.dynamic_metadata {
            response.dynamic_metadata = Some(metadata::of(request.get_ref(), &verdict));
        }
        Ok(Response::new(response))
    }
}

impl From<EnvoyError> for CallError {
    fn from(error: EnvoyError) -> Self {
        match error {
            EnvoyError::NoConfiguration => Self::NotConfigured,
            EnvoyError::Store(cause) => Self::store(&cause),
            EnvoyError::Attributes(_) | EnvoyError::Rules(_) => {
                Self::Invalid(vec![Violation::new("descriptors", error.to_string())])
            }
            EnvoyError::Batch(cause) => Self::Internal(cause.to_string()),
        }
    }
}
