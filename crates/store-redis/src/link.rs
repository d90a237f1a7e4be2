//! Connections that come back by themselves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::StoreError;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster_async::ClusterConnection,
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{RedisConfig, call::Call, client, config::Topology};

/// A few connections that share the load.
#[derive(Debug)]
pub(crate) struct Link {
    lines: Box<[Line]>,
    next: AtomicUsize,
    timeout: Duration,
}

/// One connection, and the task that replaces it when it breaks.
#[derive(Debug)]
struct Line {
    current: watch::Receiver<Option<Live>>,
    health: Arc<Health>,
    keeper: AbortHandle,
}

/// A connection with its number: complaints about an earlier one are old news.
#[derive(Clone)]
struct Live {
    number: u64,
    connection: Connection,
}

#[derive(Clone)]
enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// What callers tell the keeper.
#[derive(Debug, Default)]
struct Health {
    broken: AtomicU64,
    timeouts: AtomicU32,
    changed: Notify,
}

// === impl Link ===

impl Link {
    /// Begins to connect, and returns at once.
    pub(crate) fn open(config: &RedisConfig) -> Self {
        let count = match config.topology {
            Topology::Cluster(_) => 1,
            Topology::Standalone(_) | Topology::Sentinel { .. } => config.connections,
        };
        Self {
            lines: (0..count).map(|_| Line::open(config.clone())).collect(),
            next: AtomicUsize::new(0),
            timeout: config.timeout,
        }
    }

    /// The lines take turns; one that is known to be broken waits for its next connection.
    fn next_line(&self) -> &Line {
        let turn = self.next.fetch_add(1, Relaxed);
        let line = |i: usize| &self.lines[(turn + i) % self.lines.len()];
        (0..self.lines.len()).map(line).find(|line| line.is_up()).unwrap_or_else(|| line(0))
    }

    /// Runs the script; a server that does not know it yet is sent all of it.
    pub(crate) async fn run(&self, call: &Call<'_>) -> Result<Value, StoreError> {
        let line = self.next_line();
        timeout(self.timeout, line.run(call)).await.unwrap_or_else(|_| {
            line.note_timeout();
            Err(StoreError::Timeout(self.timeout))
        })
    }
}

// === impl Line ===

impl Line {
    /// Calls in a row without an answer after which a connection is given up.
    const MAX_TIMEOUTS: u32 = 3;

    fn open(config: RedisConfig) -> Self {
        let health = Arc::new(Health::default());
        let (publish, current) = watch::channel(None);
        let keeper = tokio::spawn(keep(config, publish, Arc::clone(&health))).abort_handle();
        Self { current, health, keeper }
    }

    async fn run(&self, call: &Call<'_>) -> Result<Value, StoreError> {
        let mut live = self.live().await?;
        let answer = match live.connection.send(&call.by_name()).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                live.connection.send(&call.in_full()).await
            }
            answer => answer,
        };
        if self.health.timeouts.load(Relaxed) != 0 {
            self.health.timeouts.store(0, Relaxed);
        }
        answer.map_err(|error| {
            if is_broken(&error) {
                self.health.report(live.number);
            }
            store_error(error)
        })
    }

    fn is_up(&self) -> bool {
        let broken = self.health.broken.load(Relaxed);
        self.current.borrow().as_ref().is_some_and(|live| live.number > broken)
    }

    /// The connection; before the first, waits for it.
    async fn live(&self) -> Result<Live, StoreError> {
        if let Some(live) = &*self.current.borrow() {
            return Ok(live.clone());
        }
        let mut current = self.current.clone();
        let live = current.wait_for(Option::is_some).await.map_err(StoreError::unavailable)?;
        live.clone().ok_or(StoreError::BreakerOpen)
    }

    fn note_timeout(&self) {
        let timeouts = self.health.timeouts.fetch_add(1, Relaxed) + 1;
        if timeouts >= Self::MAX_TIMEOUTS
            && let Some(live) = &*self.current.borrow()
        {
            self.health.report(live.number);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

// === the keeper ===

/// Connects, and connects again whenever a connection is reported broken.
async fn keep(config: RedisConfig, publish: watch::Sender<Option<Live>>, health: Arc<Health>) {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);
    let mut pause = FIRST_PAUSE;
    let mut number = 0;
    loop {
        match timeout(config.connect_timeout, connect(&config)).await {
            Ok(Ok(connection)) => {
                number += 1;
                pause = FIRST_PAUSE;
                health.timeouts.store(0, Relaxed);
                tracing::debug!(number, "connected to Redis");
                publish.send_replace(Some(Live { number, connection }));
                health.until_broken(number).await;
                tracing::warn!(number, "lost the connection to Redis");
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, retry_in = ?pause, "cannot connect to Redis");
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(_) => {
                tracing::warn!(after = ?config.connect_timeout, "cannot connect to Redis: timed out");
            }
        }
    }
}

async fn connect(config: &RedisConfig) -> RedisResult<Connection> {
    // Calls have a time-out of their own, which also covers what comes before the wire.
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(config.connect_timeout))
        .set_response_timeout(None);
    match &config.topology {
        Topology::Standalone(redis) => {
            let client = client::standalone(config, redis)?;
            let connection = client.get_multiplexed_async_connection_with_config(&settings).await;
            connection.map(Connection::Single)
        }
        Topology::Sentinel { nodes, master, redis } => {
            let mut client = client::sentinel(config, nodes, master, redis)?;
            client.get_async_connection_with_config(&settings).await.map(Connection::Single)
        }
        Topology::Cluster(nodes) => {
            client::cluster(config, nodes)?.get_async_connection().await.map(Connection::Cluster)
        }
    }
}

// === impl Health ===

impl Health {
    fn report(&self, number: u64) {
        if self.broken.fetch_max(number, Relaxed) < number {
            self.changed.notify_one();
        }
    }

    async fn until_broken(&self, number: u64) {
        while self.broken.load(Relaxed) < number {
            self.changed.notified().await;
        }
    }
}

// === impl Connection ===

impl Connection {
    async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::Single(connection) => connection.req_packed_command(command).await,
            Self::Cluster(connection) => connection.req_packed_command(command).await,
        }
        .and_then(Value::extract_error)
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("number", &self.number).finish_non_exhaustive()
    }
}

// === errors ===

/// Whether another connection might do better.
fn is_broken(error: &RedisError) -> bool {
    let demoted = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
            | ErrorKind::ClusterConnectionNotFound
    );
    demoted || error.is_io_error() || error.is_unrecoverable_error()
}

fn store_error(error: RedisError) -> StoreError {
    match error.code() {
        // Our scripts fail only on states that they did not write.
        Some("WRONGTYPE" | "ERR") => StoreError::Corrupt(error.to_string()),
        _ => StoreError::unavailable(error),
    }
}
