//! One pipelined connection.
//!
//! A task of its own writes commands and reads the replies, in order, and enforces timeouts: the
//! timeout of a call starts when its command is written, not while it waits in this process, and a
//! reply that has arrived is read before its call times out.

mod driver;

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::Circuit;
use redis::{Cmd, Value};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{mpsc, oneshot},
    task::AbortHandle,
};

use crate::reply::{ProtocolError, ServerError};
use driver::Driver;

/// A pipelined connection. Dropping the last clone closes it.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: mpsc::UnboundedSender<Request>,
    in_flight: Arc<AtomicUsize>,
    max_in_flight: usize,
    _driver: Arc<AbortOnDrop>,
}

/// Limits of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionLimits {
    /// Time until a reply is late.
    pub(crate) timeout: Duration,
    /// Maximum number of calls without a reply.
    pub(crate) max_in_flight: usize,
}

/// A command in the queue of the driver.
struct Request {
    bytes: Vec<u8>,
    /// Number of replies to skip before that of the command.
    skip: u8,
    reply: oneshot::Sender<Result<Value, CallError>>,
}

/// Error of a call.
#[derive(Clone, Debug, Error)]
pub(crate) enum CallError {
    /// Redis replied with an error.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// No reply in time.
    #[error("Redis did not reply in time")]
    Timeout,
    /// Not sent: too many calls in flight.
    #[error("too many calls in flight")]
    Full,
    /// The connection was lost; the call may have been executed.
    #[error("connection to Redis lost: {0}")]
    Closed(Arc<io::Error>),
}

struct AbortOnDrop(AbortHandle);

// === impl Connection ===

impl Connection {
    /// Starts a connection on `stream`. The receiver gets the error that ends it. When all late
    /// replies have arrived, `circuit` may retry.
    pub(crate) fn open<S>(
        stream: S,
        bounds: ConnectionLimits,
        circuit: Arc<Circuit>,
    ) -> (Self, oneshot::Receiver<Arc<io::Error>>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (requests, queue) = mpsc::unbounded_channel();
        let (over, ended) = oneshot::channel();
        let in_flight = Arc::new(AtomicUsize::new(0));
        let driver = Driver::new(stream, queue, Arc::clone(&in_flight), bounds.timeout, circuit);
        let task = tokio::spawn(async move {
            let _ = over.send(driver.await);
        });
        let driver = Arc::new(AbortOnDrop(task.abort_handle()));
        let max_in_flight = bounds.max_in_flight;
        (Self { requests, in_flight, max_in_flight, _driver: driver }, ended)
    }

    /// Returns `true` if another call fits.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.load(Relaxed) < self.max_in_flight
    }

    /// Sends `command`, unless too many calls are in flight. With `priority`, twice as many may be.
    pub(crate) async fn call(&self, command: &Cmd, priority: bool) -> Result<Value, CallError> {
        self.send(command.get_packed_command(), 0, priority).await
    }

    /// Sends `command` after `ASKING`, to a node that a slot is moving to.
    pub(crate) async fn call_asking(
        &self,
        command: &Cmd,
        priority: bool,
    ) -> Result<Value, CallError> {
        let mut bytes = redis::cmd("ASKING").get_packed_command();
        command.write_packed_command(&mut bytes);
        self.send(bytes, 1, priority).await
    }

    async fn send(&self, bytes: Vec<u8>, skip: u8, priority: bool) -> Result<Value, CallError> {
        let room = if priority { self.max_in_flight.saturating_mul(2) } else { self.max_in_flight };
        if self.in_flight.fetch_add(1, Relaxed) >= room {
            self.in_flight.fetch_sub(1, Relaxed);
            return Err(CallError::Full);
        }
        let (reply, replied) = oneshot::channel();
        self.requests.send(Request { bytes, skip, reply }).map_err(|_| CallError::closed())?;
        replied.await.unwrap_or_else(|_| Err(CallError::closed()))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl CallError ===

impl CallError {
    fn closed() -> Self {
        Self::Closed(Arc::new(io::ErrorKind::BrokenPipe.into()))
    }
}

impl From<ProtocolError> for io::Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
