//! The task of a connection: writes commands, reads replies, enforces timeouts.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use headgate::Circuit;
use redis::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{mpsc, oneshot},
    time::{Instant, Sleep, sleep_until},
};

use super::{CallError, Request};
use crate::reply::{self, Reply};

/// Future that runs one connection and resolves to the error that ends it.
pub(super) struct Driver<S> {
    stream: S,
    requests: mpsc::UnboundedReceiver<Request>,
    in_flight: Arc<AtomicUsize>,
    timeout: Duration,
    circuit: Arc<Circuit>,
    /// Written commands without a reply, in order.
    pending: VecDeque<Pending>,
    /// Number of calls at the front of `pending` that have timed out.
    late: usize,
    outgoing: Vec<u8>,
    written: usize,
    incoming: Vec<u8>,
    chunk: Box<[u8]>,
    last_read_at: Instant,
    timer: Pin<Box<Sleep>>,
    is_armed: bool,
    /// Time when the timer first found a call to be late.
    suspected_at: Option<Instant>,
}

/// A written command without a reply.
struct Pending {
    skip: u8,
    weight: usize,
    sent_at: Instant,
    reply: oneshot::Sender<Result<Value, CallError>>,
}

/// Size at which collected commands are written.
const WRITE_BATCH: usize = 64 << 10;

const READ_CHUNK: usize = 16 << 10;

/// Number of timeouts without any reply after which a connection is closed.
const SILENT_TIMEOUTS: u32 = 3;

/// Minimum silence before a connection is closed: a slow server is not a dead one.
const MIN_SILENCE: Duration = Duration::from_millis(500);

/// Time between finding a call late and timing it out. Every reply that had arrived is read by
/// then: the same driver of the runtime polls sockets and timers, sockets first.
const CONFIRM_AFTER: Duration = Duration::from_millis(1);

impl<S> Driver<S> {
    pub(super) fn new(
        stream: S,
        requests: mpsc::UnboundedReceiver<Request>,
        in_flight: Arc<AtomicUsize>,
        timeout: Duration,
        circuit: Arc<Circuit>,
    ) -> Self {
        let now = Instant::now();
        Self {
            stream,
            requests,
            in_flight,
            timeout,
            circuit,
            pending: VecDeque::new(),
            late: 0,
            outgoing: Vec::new(),
            written: 0,
            incoming: Vec::new(),
            chunk: vec![0; READ_CHUNK].into(),
            last_read_at: now,
            timer: Box::pin(sleep_until(now)),
            is_armed: false,
            suspected_at: None,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    fn drive(&mut self, context: &mut Context<'_>) -> Result<(), io::Error> {
        self.read(context)?;
        while self.write(context)?.is_ready() && self.take(context)? {}
        self.check_timeouts(context)
    }

    /// Reads and delivers all replies that have arrived.
    fn read(&mut self, context: &mut Context<'_>) -> Result<(), io::Error> {
        loop {
            let mut chunk = ReadBuf::new(&mut self.chunk);
            match Pin::new(&mut self.stream).poll_read(context, &mut chunk) {
                Poll::Pending => return Ok(()),
                Poll::Ready(read) => read?,
            }
            if chunk.filled().is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.incoming.extend_from_slice(chunk.filled());
            self.last_read_at = Instant::now();
            self.deliver()?;
        }
    }

    fn deliver(&mut self) -> Result<(), io::Error> {
        let mut read = 0;
        while let Some((reply, len)) = reply::parse(&self.incoming[read..])? {
            read += len;
            self.resolve(reply)?;
        }
        self.incoming.drain(..read);
        Ok(())
    }

    /// Delivers `reply` to the oldest call.
    fn resolve(&mut self, reply: Reply) -> Result<(), io::Error> {
        let unexpected = || io::Error::new(io::ErrorKind::InvalidData, "reply without a command");
        let first = self.pending.front_mut().ok_or_else(unexpected)?;
        if first.skip > 0 {
            first.skip -= 1;
            return Ok(());
        }
        if let Some(first) = self.pending.pop_front() {
            self.in_flight.fetch_sub(first.weight, Relaxed);
            // A call that has timed out no longer listens.
            let _ = first.reply.send(reply.map_err(CallError::Server));
            if self.late > 0 {
                self.late -= 1;
                // All late replies have arrived: a retry shows whether Redis keeps up again.
                if self.late == 0 {
                    self.circuit.allow_retry_now();
                }
            }
        }
        Ok(())
    }

    /// Takes commands from the queue. Returns `true` if there is anything to write.
    fn take(&mut self, context: &mut Context<'_>) -> Result<bool, io::Error> {
        let mut now = None;
        while self.outgoing.len() < WRITE_BATCH {
            let request = match self.requests.poll_recv(context) {
                Poll::Ready(Some(request)) => request,
                Poll::Ready(None) => return Err(io::ErrorKind::NotConnected.into()),
                Poll::Pending => break,
            };
            if request.reply.is_closed() {
                // The caller is gone, and nothing was sent yet.
                self.in_flight.fetch_sub(request.weight, Relaxed);
                continue;
            }
            let sent_at = *now.get_or_insert_with(Instant::now);
            self.outgoing.extend_from_slice(&request.bytes);
            let Request { skip, weight, reply, .. } = request;
            self.pending.push_back(Pending { skip, weight, sent_at, reply });
        }
        Ok(!self.outgoing.is_empty())
    }

    /// Writes the collected commands. Ready when all of them are written.
    fn write(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, io::Error> {
        while self.written < self.outgoing.len() {
            let rest = &self.outgoing[self.written..];
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => self.written += written?,
            }
        }
        self.outgoing.clear();
        self.written = 0;
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Ready(flushed) => flushed.map(Poll::Ready),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    /// Times out late calls, and closes a connection that has been silent for too long.
    fn check_timeouts(&mut self, context: &mut Context<'_>) -> Result<(), io::Error> {
        while !self.pending.is_empty() {
            if !self.is_armed {
                let due = self.suspected_at.map_or_else(|| self.due(), |at| at + CONFIRM_AFTER);
                self.timer.as_mut().reset(due);
                self.is_armed = true;
            }
            // Only the timer decides that time has passed. Another clock could be ahead of the
            // socket.
            if self.timer.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.is_armed = false;
            self.find_late()?;
        }
        self.suspected_at = None;
        Ok(())
    }

    /// Time when the next call is late or the connection has been silent for too long.
    fn due(&self) -> Instant {
        let silent = self.silent_since() + self.max_silence();
        self.pending.get(self.late).map_or(silent, |next| silent.min(next.sent_at + self.timeout))
    }

    fn find_late(&mut self) -> Result<(), io::Error> {
        let now = Instant::now();
        let Some(suspected_at) = self.suspected_at.take() else {
            if now >= self.due() {
                self.suspected_at = Some(now);
            }
            return Ok(());
        };
        while let Some(next) = self.pending.get_mut(self.late) {
            if next.sent_at + self.timeout > suspected_at {
                break;
            }
            let reply = std::mem::replace(&mut next.reply, oneshot::channel().0);
            let _ = reply.send(Err(CallError::Timeout));
            self.late += 1;
        }
        if self.silent_since() + self.max_silence() <= suspected_at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// Time of the last read, or of the first command without a reply if that is later.
    fn silent_since(&self) -> Instant {
        self.pending.front().map_or(self.last_read_at, |first| first.sent_at.max(self.last_read_at))
    }

    fn max_silence(&self) -> Duration {
        (self.timeout * SILENT_TIMEOUTS).max(MIN_SILENCE)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Driver<S> {
    type Output = Arc<io::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Arc<io::Error>> {
        let driver = self.get_mut();
        let Err(error) = driver.drive(context) else { return Poll::Pending };
        let error = Arc::new(error);
        for pending in driver.pending.drain(..) {
            let _ = pending.reply.send(Err(CallError::Closed(Arc::clone(&error))));
        }
        Poll::Ready(error)
    }
}
