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
    /// Maximum number of checks in calls without a reply.
    pub(crate) max_in_flight: usize,
}

/// A command in the queue of the driver.
struct Request {
    bytes: Vec<u8>,
    /// Number of replies to skip before that of the command.
    skip: u8,
    weight: usize,
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
    /// Not sent: too much is in flight.
    #[error("too many checks in flight")]
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

    /// Returns `true` if another call of this weight fits.
    pub(crate) fn has_room(&self, weight: usize) -> bool {
        fits(self.in_flight.load(Relaxed), weight, self.max_in_flight)
    }

    /// Sends `command`, unless too much is in flight. Its weight is the number of its checks: Redis
    /// is busy with a batch for as long as with that many calls. With `priority`, twice as much may
    /// be in flight.
    pub(crate) async fn call(
        &self,
        command: &Cmd,
        weight: usize,
        priority: bool,
    ) -> Result<Value, CallError> {
        self.send(command.get_packed_command(), 0, weight, priority).await
    }

    /// Sends `command` after `ASKING`, to a node that a slot is moving to.
    pub(crate) async fn call_asking(
        &self,
        command: &Cmd,
        weight: usize,
        priority: bool,
    ) -> Result<Value, CallError> {
        let mut bytes = redis::cmd("ASKING").get_packed_command();
        command.write_packed_command(&mut bytes);
        self.send(bytes, 1, weight, priority).await
    }

    async fn send(
        &self,
        bytes: Vec<u8>,
        skip: u8,
        weight: usize,
        priority: bool,
    ) -> Result<Value, CallError> {
        let max = if priority { self.max_in_flight.saturating_mul(2) } else { self.max_in_flight };
        // Not added first and subtracted again: meanwhile, large calls that are shed would take the
        // room of small ones.
        let add = |in_flight: usize| fits(in_flight, weight, max).then(|| in_flight + weight);
        if self.in_flight.fetch_update(Relaxed, Relaxed, add).is_err() {
            return Err(CallError::Full);
        }
        let (reply, replied) = oneshot::channel();
        let request = Request { bytes, skip, weight, reply };
        self.requests.send(request).map_err(|_| CallError::closed())?;
        replied.await.unwrap_or_else(|_| Err(CallError::closed()))
    }
}

/// Returns `true` if a call fits. One that is heavier than half of the bound fits if half of the
/// bound is free: no bound is too small for a batch.
fn fits(in_flight: usize, weight: usize, max: usize) -> bool {
    in_flight + weight.min(max.div_ceil(2)) <= max
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

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_call_fits_by_its_weight_and_one_above_the_bound_if_half_of_it_is_free() {
        assert!(fits(7, 1, 8) && !fits(8, 1, 8));
        assert!(fits(5, 3, 8) && !fits(6, 3, 8));
        assert!(fits(4, 1_024, 8) && !fits(5, 1_024, 8));
        assert!(fits(0, 1_024, 1) && !fits(1, 1_024, 1));
    }
}
