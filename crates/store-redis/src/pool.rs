//! Connections to one server, which are re-established when they are lost.

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
    connection::{CallError, Connection, ConnectionLimits},
    dial::{DialError, Dialer, Stream},
    endpoint::Endpoint,
    error::{ErrorClass, store_error},
};

/// Connections to one server that share the load.
pub(crate) struct Pool {
    members: Box<[Member]>,
    next: AtomicUsize,
    timeout: Duration,
}

/// Options of sending a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendOptions {
    /// Prefix it with `ASKING`: the slot is moving to this node.
    pub(crate) asking: bool,
    /// Send it even if too much is in flight: it returns units.
    pub(crate) priority: bool,
}

/// One connection, and the task that re-establishes it.
struct Member {
    state: watch::Receiver<MemberState>,
    /// Notified when the connection has to be replaced.
    replace: Arc<Notify>,
    reconnector: AbortHandle,
}

#[derive(Clone)]
enum MemberState {
    /// The first attempt is under way.
    Connecting,
    Up(Connection),
    Down(Arc<DialError>),
}

/// Error of a call.
#[derive(Debug)]
pub(crate) enum PoolError {
    /// Not sent: there is no connection.
    Down(StoreError),
    Call(CallError),
}

// === impl Pool ===

impl Pool {
    /// Starts to connect in the background.
    pub(crate) fn open(
        config: &RedisConfig,
        dialer: &Dialer,
        endpoint: &Endpoint,
        count: usize,
        circuit: &Arc<Circuit>,
    ) -> Self {
        let bounds = ConnectionLimits {
            timeout: config.timeout,
            max_in_flight: config.max_in_flight.div_ceil(count),
        };
        let member = |_| {
            Member::open(|publish, replace| Reconnector {
                endpoint: endpoint.clone(),
                dialer: dialer.clone(),
                bounds,
                connect_timeout: config.connect_timeout,
                circuit: Arc::clone(circuit),
                publish,
                replace,
            })
        };
        let members = (0..count).map(member).collect();
        Self { members, next: AtomicUsize::new(0), timeout: config.timeout }
    }

    /// Sends a command of this weight over one of the connections, round robin. Connections that
    /// are down or full are skipped if there are others.
    pub(crate) async fn send(
        &self,
        command: &Cmd,
        weight: usize,
        options: SendOptions,
    ) -> Result<Value, PoolError> {
        let connection = self.connection(weight).await.map_err(PoolError::Down)?;
        let sent = if options.asking {
            connection.call_asking(command, weight, options.priority).await
        } else {
            connection.call(command, weight, options.priority).await
        };
        sent.map_err(PoolError::Call)
    }

    /// Replaces all connections: the server is not the right one.
    pub(crate) fn reconnect(&self) {
        self.members.iter().for_each(|member| member.replace.notify_one());
    }

    /// Error of the last attempt if there is no connection.
    pub(crate) fn error(&self) -> Option<Arc<DialError>> {
        let mut last = None;
        for member in &self.members {
            match &*member.state.borrow() {
                MemberState::Up(_) => return None,
                MemberState::Connecting => {}
                MemberState::Down(error) => last = Some(Arc::clone(error)),
            }
        }
        last
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    async fn connection(&self, weight: usize) -> Result<Connection, StoreError> {
        let turn = self.next.fetch_add(1, Relaxed);
        let member = |i: usize| &self.members[turn.wrapping_add(i) % self.members.len()];
        let mut full = None;
        for i in 0..self.members.len() {
            if let MemberState::Up(connection) = &*member(i).state.borrow() {
                if connection.has_room(weight) {
                    return Ok(connection.clone());
                }
                full = full.or_else(|| Some(connection.clone()));
            }
        }
        match full {
            Some(connection) => Ok(connection),
            None => member(0).first_connection(self.timeout).await,
        }
    }
}

impl PoolError {
    /// Class of an error that Redis replied with.
    pub(crate) fn class(&self) -> Option<ErrorClass> {
        match self {
            Self::Call(CallError::Server(error)) => Some(ErrorClass::of(error)),
            Self::Call(_) | Self::Down(_) => None,
        }
    }

    /// Converts the error for the engine.
    pub(crate) fn into_store_error(self, timeout: Duration) -> StoreError {
        match self {
            Self::Down(error) => error,
            Self::Call(error) => store_error(error, timeout),
        }
    }
}

// === impl Member ===

impl Member {
    fn open(
        reconnector: impl FnOnce(watch::Sender<MemberState>, Arc<Notify>) -> Reconnector,
    ) -> Self {
        let replace = Arc::new(Notify::new());
        let (publish, state) = watch::channel(MemberState::Connecting);
        let reconnector =
            tokio::spawn(reconnector(publish, Arc::clone(&replace)).keep()).abort_handle();
        Self { state, replace, reconnector }
    }

    /// Waits for the first connection. Later ones are not waited for: they may take long.
    async fn first_connection(&self, limit: Duration) -> Result<Connection, StoreError> {
        let mut state = self.state.clone();
        let connected = state.wait_for(|state| !matches!(state, MemberState::Connecting));
        let state = timeout(limit, connected).await.map_err(|_| StoreError::Timeout(limit))?;
        match &*state.map_err(StoreError::unavailable)? {
            MemberState::Up(connection) => Ok(connection.clone()),
            MemberState::Down(error) => Err(StoreError::Unavailable(Arc::clone(error) as Arc<_>)),
            MemberState::Connecting => Err(StoreError::Timeout(limit)),
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.reconnector.abort();
    }
}

// === Reconnector ===

/// Connects, and reconnects whenever the connection is lost.
struct Reconnector {
    endpoint: Endpoint,
    dialer: Dialer,
    bounds: ConnectionLimits,
    connect_timeout: Duration,
    circuit: Arc<Circuit>,
    publish: watch::Sender<MemberState>,
    replace: Arc<Notify>,
}

/// Reason for the end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Lost,
    Replaced,
}

impl Reconnector {
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
                    // A server that accepts connections and closes them must not cause a busy loop.
                    sleep(Self::FIRST_PAUSE).await;
                }
                Err(error) => {
                    tracing::warn!(%error, retry_in = ?pause, "failed to connect to Redis");
                    self.publish.send_replace(MemberState::Down(Arc::new(error)));
                    sleep(pause).await;
                    pause = (pause * 2).min(Self::LONGEST_PAUSE);
                }
            }
        }
    }

    async fn connect(&self) -> Result<Stream, DialError> {
        let dialed = timeout(self.connect_timeout, self.endpoint.dial(&self.dialer)).await;
        dialed.unwrap_or_else(|_| {
            Err(DialError::timeout(self.endpoint.name(), self.endpoint.is_tls()))
        })
    }

    /// Publishes a connection until it is lost or replaced. `before` is the end of the previous
    /// one.
    async fn hold(&self, stream: Stream, before: End) -> End {
        let address = self.endpoint.name();
        let circuit = Arc::clone(&self.circuit);
        let (connection, ended) = Connection::open(stream, self.bounds, circuit);
        tracing::debug!(address, "connected to Redis");
        // Drop a request to replace the previous connection.
        let _ = self.replace.notified().now_or_never();
        self.publish.send_replace(MemberState::Up(connection));
        // After a lost connection, a new one is a reason to retry. After a replaced one it is not:
        // the server could be reached before, too.
        if before == End::Lost {
            self.circuit.allow_retry_now();
        }
        let (end, cause) = tokio::select! {
            ended = ended => {
                let cause = ended.map_or_else(|_| "closed".to_owned(), |error| error.to_string());
                (End::Lost, cause)
            }
            () = self.replace.notified() => (End::Replaced, "replaced".to_owned()),
        };
        tracing::warn!(address, cause, "lost connection to Redis");
        let lost = DialError::Lost { address, cause };
        self.publish.send_replace(MemberState::Down(Arc::new(lost)));
        end
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("connections", &self.members.len()).finish_non_exhaustive()
    }
}
