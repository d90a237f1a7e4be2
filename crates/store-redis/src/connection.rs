//! One connection that many calls share.
//!
//! A task of its own writes commands and reads replies, in the order of the commands. It also keeps
//! the time: a call's time-out begins when its command is written, not while it waits for this
//! process, and a reply that has arrived is read before anybody is told that there was none.

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

use crate::reply::{NotRedis, ServerError};
use driver::Driver;

/// A connection that many calls share. Its last clone closes it.
#[derive(Clone)]
pub(crate) struct Connection {
    requests: mpsc::UnboundedSender<Request>,
    in_flight: Arc<AtomicUsize>,
    max_in_flight: usize,
    _driver: Arc<Task>,
}

/// Bounds of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How long a reply may take.
    pub(crate) timeout: Duration,
    /// How many calls may wait for their replies.
    pub(crate) max_in_flight: usize,
}

/// A command on its way to the driver.
struct Request {
    bytes: Vec<u8>,
    /// Replies that come before the one that is wanted.
    skip: u8,
    answer: oneshot::Sender<Result<Value, CallError>>,
}

/// Why a call has no answer.
#[derive(Clone, Debug, Error)]
pub(crate) enum CallError {
    /// Redis answered with an error.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Redis did not answer in time.
    #[error("Redis did not answer in time")]
    Timeout,
    /// Too many calls wait for their replies: this one was not sent.
    #[error("too many calls are in flight")]
    Full,
    /// The connection is closed, and nobody knows what came of the call.
    #[error("connection to Redis lost: {0}")]
    Closed(Arc<io::Error>),
}

struct Task(AbortHandle);

// === impl Connection ===

impl Connection {
    /// Runs a connection on `stream`; the receiver is told when and why it is over. When all
    /// late replies have come, `circuit` admits a try.
    pub(crate) fn open<S>(
        stream: S,
        bounds: Bounds,
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
        let driver = Arc::new(Task(task.abort_handle()));
        let max_in_flight = bounds.max_in_flight;
        (Self { requests, in_flight, max_in_flight, _driver: driver }, ended)
    }

    /// Whether another call would be sent.
    pub(crate) fn has_room(&self) -> bool {
        self.in_flight.load(Relaxed) < self.max_in_flight
    }

    /// Sends `command` unless too many wait already; `must` sends it all the same up to twice as many,
    /// for what gives back.
    pub(crate) async fn call(&self, command: &Cmd, must: bool) -> Result<Value, CallError> {
        self.send(command.get_packed_command(), 0, must).await
    }

    /// Sends `command` to a node that a slot is moving to.
    pub(crate) async fn call_asking(&self, command: &Cmd, must: bool) -> Result<Value, CallError> {
        let mut bytes = redis::cmd("ASKING").get_packed_command();
        command.write_packed_command(&mut bytes);
        self.send(bytes, 1, must).await
    }

    async fn send(&self, bytes: Vec<u8>, skip: u8, must: bool) -> Result<Value, CallError> {
        let room = if must { self.max_in_flight.saturating_mul(2) } else { self.max_in_flight };
        if self.in_flight.fetch_add(1, Relaxed) >= room {
            self.in_flight.fetch_sub(1, Relaxed);
            return Err(CallError::Full);
        }
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request { bytes, skip, answer }).map_err(|_| CallError::closed())?;
        answered.await.unwrap_or_else(|_| Err(CallError::closed()))
    }
}

impl Drop for Task {
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

impl From<NotRedis> for io::Error {
    fn from(error: NotRedis) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
