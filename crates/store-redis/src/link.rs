//! Connections to one server, which come back by themselves.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::FutureExt;
use headgate::{Circuit, StoreError};
use redis::{Cmd, Value};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    RedisConfig,
    connection::{Bounds, CallError, Connection},
    dial::{DialError, Dialer, Stream},
    error::{Meaning, store_error},
    source::Source,
};

/// A few connections to one server that share the load.
pub(crate) struct Link {
    lines: Box<[Line]>,
    next: AtomicUsize,
    timeout: Duration,
}

/// How a command is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// To a node that the slot is moving to.
    pub(crate) asking: bool,
    /// Also when too many calls are in flight: it gives back.
    pub(crate) must: bool,
}

/// One connection, and the task that replaces it when it breaks.
struct Line {
    state: watch::Receiver<LineState>,
    /// Rung when this connection should be replaced.
    replace: Arc<Notify>,
    keeper: AbortHandle,
}

#[derive(Clone)]
enum LineState {
    /// Not connected yet, and not refused yet either.
    Begun,
    Up(Connection),
    Down(Arc<DialError>),
}

/// Why a call to a link has no answer.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// It was not sent: there is no connection.
    Down(StoreError),
    Call(CallError),
}

// === impl Link ===

impl Link {
    /// Begins to connect, and returns at once.
    pub(crate) fn open(
        config: &RedisConfig,
        dialer: &Dialer,
        source: &Source,
        count: usize,
        circuit: &Arc<Circuit>,
    ) -> Self {
        let bounds =
            Bounds { timeout: config.timeout, max_in_flight: config.max_in_flight.div_ceil(count) };
        let line = |_| {
            Line::open(|publish, replace| Keeper {
                source: source.clone(),
                dialer: dialer.clone(),
                bounds,
                connect_timeout: config.connect_timeout,
                circuit: Arc::clone(circuit),
                publish,
                replace,
            })
        };
        let lines = (0..count).map(line).collect();
        Self { lines, next: AtomicUsize::new(0), timeout: config.timeout }
    }

    /// Sends a command over one of the connections. They take turns; those that are down or full are
    /// left out while others are not.
    pub(crate) async fn send(&self, command: &Cmd, manner: Manner) -> Result<Value, LinkError> {
        let connection = self.connection().await.map_err(LinkError::Down)?;
        let sent = if manner.asking {
            connection.call_asking(command, manner.must).await
        } else {
            connection.call(command, manner.must).await
        };
        sent.map_err(LinkError::Call)
    }

    /// Has all connections made anew: the server is not the one to talk to.
    pub(crate) fn reconnect(&self) {
        self.lines.iter().for_each(|line| line.replace.notify_one());
    }

    /// Why there is no connection; nothing if there is one, or the first is being made.
    pub(crate) fn trouble(&self) -> Option<Arc<DialError>> {
        let mut trouble = None;
        for line in &self.lines {
            match &*line.state.borrow() {
                LineState::Up(_) => return None,
                LineState::Begun => {}
                LineState::Down(error) => trouble = Some(Arc::clone(error)),
            }
        }
        trouble
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn connection(&self) -> Result<Connection, StoreError> {
        let turn = self.next.fetch_add(1, Relaxed);
        let line = |i: usize| &self.lines[turn.wrapping_add(i) % self.lines.len()];
        let mut full = None;
        for i in 0..self.lines.len() {
            if let LineState::Up(connection) = &*line(i).state.borrow() {
                if connection.has_room() {
                    return Ok(connection.clone());
                }
                full = full.or_else(|| Some(connection.clone()));
            }
        }
        match full {
            Some(connection) => Ok(connection),
            None => line(0).first_connection(self.timeout).await,
        }
    }
}

impl LinkError {
    /// What the error means, where Redis answered with one.
    pub(crate) fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Call(CallError::Server(error)) => Some(Meaning::of(error)),
            Self::Call(_) | Self::Down(_) => None,
        }
    }

    /// What the engine is told.
    pub(crate) fn into_store_error(self, timeout: Duration) -> StoreError {
        match self {
            Self::Down(error) => error,
            Self::Call(error) => store_error(error, timeout),
        }
    }
}

// === impl Line ===

impl Line {
    fn open(keeper: impl FnOnce(watch::Sender<LineState>, Arc<Notify>) -> Keeper) -> Self {
        let replace = Arc::new(Notify::new());
        let (publish, state) = watch::channel(LineState::Begun);
        let keeper = tokio::spawn(keeper(publish, Arc::clone(&replace)).keep()).abort_handle();
        Self { state, replace, keeper }
    }

    /// The connection of a line that has none. Only the first is waited for: later ones may take
    /// long, and nobody gains by finding out.
    async fn first_connection(&self, patience: Duration) -> Result<Connection, StoreError> {
        let mut state = self.state.clone();
        let begun = state.wait_for(|state| !matches!(state, LineState::Begun));
        let state = timeout(patience, begun).await.map_err(|_| StoreError::Timeout(patience))?;
        match &*state.map_err(StoreError::unavailable)? {
            LineState::Up(connection) => Ok(connection.clone()),
            LineState::Down(error) => Err(StoreError::Unavailable(Arc::clone(error) as Arc<_>)),
            LineState::Begun => Err(StoreError::Timeout(patience)),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

// === the keeper ===

/// Connects, and connects again whenever a connection is lost.
struct Keeper {
    source: Source,
    dialer: Dialer,
    bounds: Bounds,
    connect_timeout: Duration,
    circuit: Arc<Circuit>,
    publish: watch::Sender<LineState>,
    replace: Arc<Notify>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lost,
    Replaced,
}

impl Keeper {
    const FIRST_PAUSE: Duration = Duration::from_millis(50);
    const LONGEST_PAUSE: Duration = Duration::from_secs(1);

    async fn keep(self) {
        let mut pause = Self::FIRST_PAUSE;
        let mut end = End::Lost;
        loop {
            match self.connect().await {
                Ok(stream) => {
                    pause = Self::FIRST_PAUSE;
                    end = self.hold(stream, end).await;
                    // A server that accepts connections and closes them is not dialled in a loop.
                    sleep(Self::FIRST_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(%error, retry_in = ?pause, "cannot connect to Redis");
                    self.publish.send_replace(LineState::Down(Arc::new(error)));
                    sleep(pause).await;
                    pause = (pause * 2).min(Self::LONGEST_PAUSE);
                }
            }
        }
    }

    async fn connect(&self) -> Result<Stream, DialError> {
        let dialed = timeout(self.connect_timeout, self.source.dial(&self.dialer)).await;
        dialed.unwrap_or_else(|_| Err(DialError::timeout(self.source.name(), self.source.is_tls())))
    }

    /// Offers a connection until it is lost or to be replaced; `before` is how the one before ended.
    async fn hold(&self, stream: Stream, before: End) -> End {
        let address = self.source.name();
        let circuit = Arc::clone(&self.circuit);
        let (connection, ended) = Connection::open(stream, self.bounds, circuit);
        tracing::debug!(address, "connected to Redis");
        // A wish from before is fulfilled.
        let _ = self.replace.notified().now_or_never();
        self.publish.send_replace(LineState::Up(connection));
        // A server that did not do what it was asked may still not, although it can be reached.
        if before == End::Lost {
            self.circuit.allow_retry_now();
        }
        let (end, cause) = tokio::select! {
            ended = ended => {
                let cause = ended.map_or_else(|_| "closed".to_owned(), |error| error.to_string());
                (End::Lost, cause)
            }
            () = self.replace.notified() => (End::Replaced, "it is to be replaced".to_owned()),
        };
        tracing::warn!(address, cause, "lost the connection to Redis");
        let lost = DialError::Lost { address, cause };
        self.publish.send_replace(LineState::Down(Arc::new(lost)));
        end
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("lines", &self.lines.len()).finish_non_exhaustive()
    }
}
