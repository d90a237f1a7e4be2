//! Composition: builds the service, serves it, stops it.

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::response::{IntoResponse as _, Response};
use headgate::{Clock, LimitError, StoreError};
use headgate_app_common::{HttpServer, VariableError};
use headgate_guard::TrustedProxies;
use headgate_serve::{Bounds, Timeouts, Tls};
use headgate_store_dynamodb::DynamoDbStore;
use thiserror::Error;
use tokio::{net::TcpListener, task::JoinSet, time};

use crate::{
    config::{self, Config, Database, StoreKind},
    cooldown::Cooldown,
    identifier::Identifiers,
    posts::{DynamoDbPosts, PostRepository, RepositoryError, SqlitePosts},
    publish::Publisher,
    rest, stores,
};

/// The service.
pub struct App {
    pub(crate) publisher: Publisher,
    pub(crate) posts: Arc<dyn PostRepository>,
    pub(crate) proxies: TrustedProxies,
    tls: Option<Arc<Tls>>,
    stopping: Arc<AtomicBool>,
    shutdown_delay: Duration,
}

/// Error of building the service.
#[derive(Debug, Error)]
pub enum BuildError {
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] VariableError),
    /// The cooldown is not a valid limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The table of cooldowns cannot be created.
    #[error("cannot create the table of cooldowns: {0}")]
    RateLimits(#[source] StoreError),
    /// The database of posts cannot be opened.
    #[error("cannot open the database of posts: {0}")]
    Posts(#[from] RepositoryError),
}

const HTTP: HttpServer = HttpServer {
    bounds: Bounds { max_connections: 10_000, max_buffered_bytes: 64 * 1024 * 1024 },
    timeouts: Timeouts {
        idle: Duration::from_secs(75),
        grace: Duration::from_secs(1),
        drain: Duration::from_secs(30),
    },
    request_timeout: Duration::from_secs(30),
    timed_out,
};

fn timed_out() -> Response {
    rest::error::ApiError::TIMEOUT.into_response()
}

impl App {
    /// Builds the service of `config`, with `clock` for everything.
    ///
    /// DynamoDB need not be available, unless its tables are to be created.
    pub async fn build(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        let open = |tls| config::TLS.open(tls, Arc::clone(&clock));
        let tls = config.tls.as_ref().map(open).transpose()?;
        let cooldown = cooldown(config, &clock).await?;
        let posts = posts(config).await?;
        let publisher = Publisher {
            identifiers: Identifiers::new(config.secret.as_ref(), config.ipv6),
            cooldown,
            posts: Arc::clone(&posts),
            clock,
        };
        Ok(Self {
            publisher,
            posts,
            proxies: config.proxies.clone(),
            tls,
            stopping: Arc::default(),
            shutdown_delay: config.shutdown_delay,
        })
    }

    /// Serves until `shutdown`, then drains. For [`Config::shutdown_delay`] it still accepts
    /// requests, while its health says that it stops.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let (stopping, delay) = (Arc::clone(&self.stopping), self.shutdown_delay);
        let stop = async move {
            shutdown.await;
            stopping.store(true, Relaxed);
            time::sleep(delay).await;
        };
        let tls = self.tls.clone();
        // Ends with the service.
        let mut background = JoinSet::new();
        if let Some(tls) = tls.clone() {
            background.spawn(tls.watch());
        }
        HTTP.serve(listener, tls, rest::router(self), |_| Some(()), stop).await;
        Ok(())
    }

    /// Returns true if the service is about to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }
}

async fn cooldown(config: &Config, clock: &Arc<dyn Clock>) -> Result<Cooldown, BuildError> {
    let own = stores::in_memory(Arc::clone(clock));
    if config.store == StoreKind::Memory {
        return Ok(Cooldown::in_memory(own)?);
    }
    let store = DynamoDbStore::connect(config.dynamodb.clone()).with_clock(Arc::clone(clock));
    if config.create_tables {
        store.create_table().await.map_err(BuildError::RateLimits)?;
    }
    Ok(Cooldown::shared(stores::in_dynamodb(store, Arc::clone(clock)), own)?)
}

async fn posts(config: &Config) -> Result<Arc<dyn PostRepository>, BuildError> {
    if let Database::Sqlite(path) = &config.database {
        return Ok(Arc::new(SqlitePosts::open(path).await?));
    }
    let posts = DynamoDbPosts::new(&config.dynamodb.client(), config.tables.posts.clone());
    if config.create_tables {
        posts.create_table().await?;
    }
    Ok(Arc::new(posts))
}
