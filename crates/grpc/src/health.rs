//! `grpc.health.v1.Health`: serving from the first configuration until the server drains. It
//! depends on no store, as `/healthz`: a restart would not repair one.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, future, stream};
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

/// Service name that envoyproxy/ratelimit reports: health checks written for it may use it.
const ENVOYPROXY: &str = "ratelimit";

/// The health of the process.
#[derive(Clone)]
pub(super) struct Health {
    draining: watch::Receiver<bool>,
    /// True while readiness waits for the first Envoy configuration.
    starting: watch::Receiver<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    Draining,
}

type Statuses = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

impl Health {
    pub(super) const fn new(
        draining: watch::Receiver<bool>,
        starting: watch::Receiver<bool>,
    ) -> Self {
        Self { draining, starting }
    }

    fn now(&self) -> Phase {
        match (*self.draining.borrow(), *self.starting.borrow()) {
            (true, _) => Phase::Draining,
            (false, true) => Phase::Starting,
            (false, false) => Phase::Serving,
        }
    }

    /// Waits for the phase after `phase`; `None` after draining.
    async fn after(&mut self, phase: Phase) -> Option<Phase> {
        let Self { draining, starting } = self;
        let drained = draining.wait_for(|draining| *draining);
        match phase {
            Phase::Draining => None,
            Phase::Serving => drained.await.ok().map(|_| Phase::Draining),
            Phase::Starting => tokio::select! {
                told = drained => told.ok().map(|_| Phase::Draining),
                told = starting.wait_for(|starting| !starting) => told.ok().map(|_| Phase::Serving),
            },
        }
    }
}

impl From<Phase> for ServingStatus {
    fn from(phase: Phase) -> Self {
        if phase == Phase::Serving { Self::Serving } else { Self::NotServing }
    }
}

/// Returns true if there is a service of this name; the empty name is the server itself.
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
        Ok(Response::new(said(self.now().into())))
    }

    /// Sends the current status, and every change. The stream ends when the server drains, which
    /// waits for open streams.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Statuses>, Status> {
        let first = self.now();
        let later = stream::unfold((self.clone(), first), async |(mut health, phase)| {
            let next = health.after(phase).await?;
            Some((ServingStatus::from(next), (health, next)))
        });
        let known = is_known(&request.get_ref().service);
        let first = if known { first.into() } else { ServingStatus::ServiceUnknown };
        let later = later.filter(move |_| future::ready(known));
        let statuses = stream::once(future::ready(first)).chain(later);
        Ok(Response::new(Box::pin(statuses.map(|status| Ok(said(status))))))
    }
}
