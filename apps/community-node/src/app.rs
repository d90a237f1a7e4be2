//! Composition: builds the node, serves it, stops it.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::Router;
use headgate::{Clock, SystemClock};
use headgate_app_common::VariableError;
use headgate_persistence::{Database, QuotaDatabase};
use headgate_serve::Bounds;
use headgate_service_config::{Reloader, Watcher};
use headgate_store_memory::MemoryStore;
use headgate_store_redis::{RedisConfig, RedisStore};
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time};
use tracing::warn;

use crate::{
    Config, Node,
    config::{self, Backend},
    denylist::Denylist,
    gossip,
    http::Service,
    metrics::Metrics,
    relay::{self, Relay, Timing},
    serve::{self, ConnectionLimit},
};

/// A node that is ready to listen.
pub struct App {
    node: Arc<Node>,
    reloader: Reloader,
    timing: Timing,
    relay_bounds: relay::Bounds,
    metrics_listener: Option<TcpListener>,
    stop: watch::Sender<bool>,
}

/// Error of building the node.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] VariableError),
    /// Two metrics have the same name.
    #[error("metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The URL of Redis is invalid.
    #[error("CN_REDIS_URL: {0}")]
    Redis(#[from] headgate_store_redis::RedisConfigError),
}

/// Timeout of the database at the start.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between attempts to migrate an unavailable database.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

// === impl App ===

impl App {
    /// Builds the node of `config` on the machine's clock; days of quotas follow the database's
    /// clock. If the database is unavailable, the node starts on safe defaults.
    pub async fn start(config: Config) -> Result<Self, BuildError> {
        Self::assemble(config, Arc::new(SystemClock::new()), Database::quotas_on).await
    }

    /// Builds the node with `clock` for everything, for tests.
    pub async fn build(config: Config, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        Self::assemble(config, clock, Database::quotas_at).await
    }

    async fn assemble(
        config: Config,
        clock: Arc<dyn Clock>,
        quotas: fn(&Database, Arc<dyn Clock>) -> QuotaDatabase,
    ) -> Result<Self, BuildError> {
        let open = |tls| config::TLS.open(tls, Arc::clone(&clock));
        let tls = config.tls.as_ref().map(open).transpose()?;
        let database = Database::open(&config.database);
        let (stop, stopping) = watch::channel(false);
        let metrics = Metrics::new()?;
        let node = Arc::new(Node {
            denylist: Denylist::new(database.denylist(), metrics.denylist_entries.clone()),
            clock: Arc::clone(&clock),
            quotas: quotas(&database, Arc::clone(&clock)),
            relay: Watcher::new(),
            user_api: Watcher::new(),
            bootstrap: Watcher::new(),
            guards: guards(&config, &clock)?,
            metrics,
            tls,
            draining: AtomicBool::new(false),
            stopping,
            database,
            config,
        });
        let repository = Arc::new(node.database.service_configs());
        let reloader = Reloader::new(repository, clock, &node.config.instance)
            .every(node.config.poll)
            .watch(&node.relay)
            .watch(&node.user_api)
            .watch(&node.bootstrap);
        let ready = async {
            node.database.migrate().await?;
            reloader.refresh().await;
            if let Err(error) = node.denylist.refresh().await {
                warn!(%error, "failed to read the denylist");
            }
            Ok::<(), headgate_ratelimit::RepositoryError>(())
        };
        match time::timeout(START_TIMEOUT, ready).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "starting on safe defaults"),
            Err(_) => warn!("starting on safe defaults: the database timed out"),
        }
        if !node.denylist.is_loaded() {
            warn!("starting without a denylist; all subjects are admitted until it is read");
        }
        let (timing, relay_bounds) = (Timing::default(), relay::Bounds::default());
        Ok(Self { node, reloader, timing, relay_bounds, metrics_listener: None, stop })
    }

    /// Sets other intervals and timeouts of the relay's connections.
    #[must_use]
    pub fn relay_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Sets other bounds of the relay's clients.
    #[must_use]
    pub fn relay_bounds(self, relay_bounds: relay::Bounds) -> Self {
        Self { relay_bounds, ..self }
    }

    /// Serves `/metrics` and `/healthz` on a listener of their own: that of
    /// [`Config::metrics_listen`].
    #[must_use]
    pub fn metrics_on(self, listener: TcpListener) -> Self {
        Self { metrics_listener: Some(listener), ..self }
    }

    /// State that the entrances share.
    pub const fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Serves until `shutdown`, then drains. For [`Config::shutdown_delay`] it still accepts
    /// requests, while its health says that it stops.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let bounds = serve::bounds();
        // Half of the connections are left for requests.
        let most = u32::try_from(bounds.max_connections / 2).unwrap_or(u32::MAX).max(1);
        let max_connections = self.relay_bounds.max_connections.min(most);
        let relay_bounds = relay::Bounds { max_connections, ..self.relay_bounds };
        let relay = Relay::new(&self.node, listener.local_addr()?, self.timing, relay_bounds);
        let relay = relay.map_err(io::Error::other)?;
        let gossip = gossip::start(&self.node, &relay).await?;
        let http = Service::new(&self.node, &relay).map_err(io::Error::other)?;
        let routes = Router::new().merge(relay.router()).merge(http.router());
        let mut background = JoinSet::new();
        if let Some(listener) = self.metrics_listener {
            let routes = http.metrics_router();
            background.spawn(serve_metrics(listener, bounds, routes, self.node.clone()));
        }
        if let Some(tls) = self.node.tls.clone() {
            background.spawn(tls.watch());
        }
        background.spawn(http.run());
        background.spawn(relay.follow_document());
        background.spawn(reload(Arc::clone(&self.node), self.reloader));
        let (stop, node) = (self.stop, Arc::clone(&self.node));
        let stopping = async move {
            shutdown.await;
            node.draining.store(true, Relaxed);
            time::sleep(node.config.shutdown_delay).await;
            stop.send_replace(true);
        };
        let tls = self.node.tls.clone();
        serve::serve(listener, bounds, tls, routes, connection_limit(&self.node), stopping).await;
        gossip.stop().await;
        Ok(())
    }
}

async fn serve_metrics(listener: TcpListener, bounds: Bounds, routes: Router, node: Arc<Node>) {
    let tls = node.tls.clone();
    serve::serve(listener, bounds, tls, routes, connection_limit(&node), node.stopped()).await;
}

fn connection_limit(node: &Node) -> ConnectionLimit {
    ConnectionLimit::new(node.config.proxies.clone(), node.config.ipv6)
}

/// Backend of the guards of all entrances.
fn guards(
    config: &Config,
    clock: &Arc<dyn Clock>,
) -> Result<headgate_guard::Backend, headgate_store_redis::RedisConfigError> {
    let clock = Arc::clone(clock);
    let backend = match &config.backend {
        Backend::InMemory => {
            let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
            headgate_guard::Backend::on(Arc::new(store)).clock(clock)
        }
        Backend::Redis { url, timeout } => {
            let redis = RedisConfig::from_url(url.reveal())?.timeout(*timeout);
            // A server that may take that long to answer may take as long to connect.
            let connect_timeout = (*timeout).max(RedisConfig::CONNECT_TIMEOUT);
            let store = RedisStore::connect(redis.connect_timeout(connect_timeout));
            headgate_guard::Backend::shared(Arc::new(store), config.replicas).clock(clock)
        }
    };
    Ok(backend.ipv6_prefix(config.ipv6))
}

/// Keeps documents and the denylist up to date, once the database is migrated.
async fn reload(node: Arc<Node>, reloader: Reloader) {
    while let Err(error) = node.database.migrate().await {
        warn!(%error, "failed to migrate the database; retrying");
        time::sleep(RETRY_INTERVAL).await;
    }
    tokio::join!(reloader.run(), node.denylist.follow());
}
