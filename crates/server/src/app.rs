//! Composition: `build` creates the server, `serve` runs it.

mod build;
mod connection_metrics;
mod live;
mod metrics_export;
mod port_tls;
mod query_metrics;
mod serve;
mod tls_metrics;

use std::{io, sync::Arc};

use headgate::LimitError;
use headgate_api::{Operations, quotas::QuotaTasks};
use headgate_config::{ConfigError, LiveDuration, Problem};
use headgate_console::Sampler;
use headgate_envoy::Configurator;
use headgate_events::{EventSupervisor, Events};
use headgate_grpc::Grpc;
use headgate_serve::{Connections, Timeouts, UnixSocket};
use headgate_stores::{Leases, OpenError};
use headgate_telemetry::{
    metrics::ExportError,
    trace::{Tracer, TracerError},
};
use thiserror::Error;
use tokio::net::TcpListener;

use self::{metrics_export::MetricsExport, port_tls::PortTls};
use crate::{refresher::Refresher, reload::Reloader, rest::Surface, workers::Workers};

pub use crate::workers::Liveness;
pub use headgate_auth::AdminToken;
pub use headgate_stores::StoreKind;

/// A server that is ready to listen.
pub struct App {
    surface: Arc<Surface>,
    grpc: Arc<Grpc>,
    operations: Arc<Operations>,
    reloader: Arc<Reloader>,
    tasks: Tasks,
    events: Events,
    workers: Workers,
    new_admin_token: Option<AdminToken>,
    connections: Arc<Connections>,
    tls: PortTls,
    timeouts: Timeouts,
    shutdown_delay: LiveDuration,
    tracer: Option<Tracer>,
    metrics_export: Option<Arc<MetricsExport>>,
    leases: Leases,
}

/// Tasks in the background.
struct Tasks {
    refresher: Refresher,
    sampler: Sampler,
    events: EventSupervisor,
    quotas: QuotaTasks,
    envoy: Option<Configurator>,
    leases: Leases,
}

/// The listeners of a server.
#[derive(Debug)]
pub struct Listeners {
    /// For HTTP.
    pub rest: TcpListener,
    /// For gRPC.
    pub grpc: TcpListener,
    /// For HTTP, besides the port.
    pub rest_socket: Option<UnixSocket>,
    /// For gRPC, besides the port.
    pub grpc_socket: Option<UnixSocket>,
}

/// A server that cannot be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A configured value that cannot be used.
    #[error("{0}")]
    Config(Problem),
    /// An invalid default rule.
    #[error("ratelimit: {0}")]
    DefaultRule(#[from] LimitError),
    /// Invalid files of Envoy's domains.
    #[error("envoy: {0}")]
    Envoy(#[from] ConfigError),
    /// Metrics that cannot be registered.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// Traces that cannot be exported.
    #[error("observability.trace: {0}")]
    Tracer(#[from] TracerError),
    /// Metrics that cannot be exported.
    #[error("observability.metrics.otlp: {0}")]
    MetricsExport(#[from] ExportError),
    /// Threads that cannot be started.
    #[error("cannot start the server's threads: {0}")]
    Workers(io::Error),
    /// An admin token that can neither be read nor created.
    #[error("{0}")]
    AdminToken(io::Error),
}

impl From<OpenError> for BuildError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Config(problem) => Self::Config(problem),
            OpenError::Metrics(error) => Self::Metrics(error),
        }
    }
}

impl App {
    /// Returns the kind of the store.
    pub fn store(&self) -> StoreKind {
        self.operations.store
    }

    /// Returns what reloads the configuration while the server runs.
    pub fn reloader(&self) -> Arc<Reloader> {
        Arc::clone(&self.reloader)
    }

    /// Returns a check that the server is alive.
    pub fn liveness(&self) -> Liveness {
        self.workers.liveness()
    }

    /// Returns the admin token, if this start generated it.
    pub const fn new_admin_token(&self) -> Option<&AdminToken> {
        self.new_admin_token.as_ref()
    }
}

#[cfg(test)]
impl App {
    pub(crate) fn surface(&self) -> &Surface {
        &self.surface
    }
}
