//! `grpc.health.v1.Health`: the process answers, until it drains. It asks nobody, for the same
//! reason as `/healthz`: restarting the process would bring no store back.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus, health_server,
};

use super::{
    error::CallError,
    proto::{
        envoy::service::ratelimit::v3::rate_limit_service_server::SERVICE_NAME as ENVOY,
        quota::quota_service_server::SERVICE_NAME as QUOTAS,
        rate_limit_service_server::SERVICE_NAME as RATE_LIMITS,
    },
};

/// What envoyproxy/ratelimit calls itself: its users' health checks may name it.
const ENVOYPROXY: &str = "ratelimit";

/// Answers for the process. The channel says whether it drains.
pub(super) struct Health(watch::Receiver<bool>);

type Statuses = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

impl Health {
    pub(super) const fn new(draining: watch::Receiver<bool>) -> Self {
        Self(draining)
    }

    fn now(&self) -> ServingStatus {
        if *self.0.borrow() { ServingStatus::NotServing } else { ServingStatus::Serving }
    }
}

/// Whether there is a service of this name; the empty name is the whole server's.
fn is_known(service: &str) -> bool {
    matches!(service, "" | RATE_LIMITS | QUOTAS | ENVOY | ENVOYPROXY)
}

const fn said(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status as i32 }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = Statuses;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(CallError::NoSuchService.into());
        }
        Ok(Response::new(said(self.now())))
    }

    /// Says how it is now, and once more when the process drains. Then the stream ends: draining waits for it.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Statuses>, Status> {
        let known = is_known(&request.get_ref().service);
        let first = if known { self.now() } else { ServingStatus::ServiceUnknown };
        let mut draining = self.0.clone();
        let last = async move {
            let drained = draining.wait_for(|draining| *draining).await.is_ok();
            (known && drained && first == ServingStatus::Serving)
                .then_some(said(ServingStatus::NotServing))
        };
        let last = stream::once(last).filter_map(std::future::ready);
        let statuses = stream::once(std::future::ready(said(first))).chain(last).map(Ok);
        Ok(Response::new(Box::pin(statuses)))
    }
}
