//! How it all fits together.

use std::{future::Future, io, net::SocketAddr, sync::Arc};

use axum::Router;
use headgate::Clock;
use headgate_guard::Backend;
use headgate_persistence::Database;
use headgate_service_config::{Reloader, Watcher};
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::{
    Config, Node, gossip,
    metrics::Metrics,
    relay::{Relay, Timing},
};

/// A node that is ready to listen.
pub struct App {
    node: Arc<Node>,
    reloader: Reloader,
    timing: Timing,
    stop: watch::Sender<bool>,
}

/// Why there is no node.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The metrics cannot be told apart.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

// === impl App ===

impl App {
    /// The node that `config` describes, at the time of `clock`. Its database need not be there: it
    /// then starts on safe defaults.
    pub async fn build(config: Config, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        let database = Database::open(&config.database);
        let (stop, stopping) = watch::channel(false);
        let node = Arc::new(Node {
            clock: Arc::clone(&clock),
            relay: Watcher::new(),
            user_api: Watcher::new(),
            bootstrap: Watcher::new(),
            metrics: Metrics::new()?,
            guards: Backend::memory(),
            stopping,
            database,
            config,
        });
        let repository = Arc::new(node.database.service_configs());
        let reloader = Reloader::new(repository, clock, &node.config.instance)
            .every(node.config.poll)
            .keep(&node.relay)
            .keep(&node.user_api)
            .keep(&node.bootstrap);
        reloader.refresh().await;
        Ok(Self { node, reloader, timing: Timing::default(), stop })
    }

    /// Looks after the relay's connections at other times than usual.
    #[must_use]
    pub fn relay_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// What the entrances share.
    pub const fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Answers requests until `shutdown`, and then those that have begun.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let relay = Relay::new(&self.node, listener.local_addr()?, self.timing);
        let relay = relay.map_err(io::Error::other)?;
        let gossip = gossip::start(&self.node, &relay).await?;
        let mut background = JoinSet::new();
        background.spawn(self.reloader.run());
        background.spawn(relay.clone().follow_document());
        let stop = self.stop;
        let stopping = async move {
            shutdown.await;
            stop.send_replace(true);
        };
        let routes = Router::new().merge(relay.router());
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let served = axum::serve(listener, service).with_graceful_shutdown(stopping).await;
        gossip.stop().await;
        served
    }
}
