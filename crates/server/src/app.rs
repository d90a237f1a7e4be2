//! Wires everything: configuration, store, limiter, router.

use std::{future::Future, sync::Arc, time::Duration};

use headgate::LimitError;
use thiserror::Error;
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::{
    config::{Config, Problem},
    metrics::Metrics,
    rest::{Rest, Surface},
    rule::DefaultRule,
    serve::{self, Drain},
    stores::Stores,
};

pub use crate::stores::StoreKind;

/// A server that is ready to listen.
pub struct App {
    surface: Arc<Surface>,
    store: StoreKind,
    shutdown_timeout: Duration,
}

/// Why there is no server.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A key has a value that cannot be used.
    #[error("{0}")]
    Config(Problem),
    /// The default rule is no limit.
    #[error("ratelimit: {0}")]
    DefaultRule(#[from] LimitError),
    /// The metrics cannot be told apart.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

impl App {
    /// Builds the server that `config` describes. It must be called within a tokio runtime.
    pub fn build(config: &Config) -> Result<Self, BuildError> {
        let rule = DefaultRule::new(&config.ratelimit)?;
        let Stores { limiter, probe, memory, kind } =
            Stores::open(config, rule.limit()).map_err(BuildError::Config)?;
        let metrics = Metrics::new(config, kind, memory)?;
        let rest = Rest { rule, limiter, probe, metrics };
        Ok(Self {
            surface: Arc::new(Surface::new(rest, config.server.request_timeout())),
            store: kind,
            shutdown_timeout: config.server.shutdown_timeout(),
        })
    }

    /// Which store decides.
    pub const fn store(&self) -> StoreKind {
        self.store
    }

    /// Answers on `listener` until `shutdown` is ready, then finishes what it has begun.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> Drain {
        let surface = self.surface;
        let answer = move |request| {
            let surface = Arc::clone(&surface);
            async move { surface.answer(request).await }
        };
        let drain = serve::serve(listener, answer, shutdown, self.shutdown_timeout).await;
        match drain {
            Drain::Complete => info!("Stopped: every request was answered"),
            Drain::CutOff(connections) => {
                warn!(connections, "Stopped: time ran out on {connections} connections");
            }
        }
        drain
    }
}
