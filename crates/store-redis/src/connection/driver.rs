//! What writes a connection's commands, reads its replies and keeps its time.

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

/// Runs one connection; ends with the reason why it is of no more use.
pub(super) struct Driver<S> {
    stream: S,
    requests: mpsc::UnboundedReceiver<Request>,
    in_flight: Arc<AtomicUsize>,
    timeout: Duration,
    circuit: Arc<Circuit>,
    /// Commands that were written, in order.
    waiting: VecDeque<Waiting>,
    /// How many of `waiting`, from the first, have been given up by their callers' time-out.
    late: usize,
    outgoing: Vec<u8>,
    written: usize,
    incoming: Vec<u8>,
    chunk: Box<[u8]>,
    heard_at: Instant,
    timer: Pin<Box<Sleep>>,
    is_armed: bool,
    /// When the timer found a call late for the first time.
    suspected_at: Option<Instant>,
}

/// A command that was written and has no reply yet.
struct Waiting {
    skip: u8,
    sent_at: Instant,
    answer: oneshot::Sender<Result<Value, CallError>>,
}

/// Commands are gathered up to this size before they are written.
const WRITE_AT_ONCE: usize = 64 << 10;

const READ_AT_ONCE: usize = 16 << 10;

/// Time-outs without a word after which a connection is given up.
const SILENT_TIMEOUTS: u32 = 3;

/// A connection may always be silent for this long: what is slow is not dead.
const MIN_SILENCE: Duration = Duration::from_millis(500);

/// Time between the timer's first finding that a call is late and its verdict. Whatever had arrived
/// by then has been read: the timer and the socket are looked at by the same part of the runtime,
/// the socket first.
const SECOND_LOOK: Duration = Duration::from_millis(1);

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
            waiting: VecDeque::new(),
            late: 0,
            outgoing: Vec::new(),
            written: 0,
            incoming: Vec::new(),
            chunk: vec![0; READ_AT_ONCE].into(),
            heard_at: now,
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
        self.keep_time(context)
    }

    /// Reads all that has arrived, and tells whoever waits for it.
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
            self.heard_at = Instant::now();
            self.deliver()?;
        }
    }

    fn deliver(&mut self) -> Result<(), io::Error> {
        let mut read = 0;
        while let Some((reply, len)) = reply::parse(&self.incoming[read..])? {
            read += len;
            self.answer(reply)?;
        }
        self.incoming.drain(..read);
        Ok(())
    }

    /// Gives `reply` to the call that has waited longest.
    fn answer(&mut self, reply: Reply) -> Result<(), io::Error> {
        let unasked =
            || io::Error::new(io::ErrorKind::InvalidData, "a reply that nobody asked for");
        let first = self.waiting.front_mut().ok_or_else(unasked)?;
        if first.skip > 0 {
            first.skip -= 1;
            return Ok(());
        }
        if let Some(first) = self.waiting.pop_front() {
            // Whoever was told that it is late does not listen any more.
            let _ = first.answer.send(reply.map_err(CallError::Server));
            if self.late > 0 {
                self.late -= 1;
                // Redis has answered all that was late: one try now tells whether it keeps up again.
                if self.late == 0 {
                    self.circuit.allow_retry_now();
                }
            }
            self.in_flight.fetch_sub(1, Relaxed);
        }
        Ok(())
    }

    /// Takes commands to write; says whether there are any.
    fn take(&mut self, context: &mut Context<'_>) -> Result<bool, io::Error> {
        let mut now = None;
        while self.outgoing.len() < WRITE_AT_ONCE {
            let request = match self.requests.poll_recv(context) {
                Poll::Ready(Some(request)) => request,
                Poll::Ready(None) => return Err(io::ErrorKind::NotConnected.into()),
                Poll::Pending => break,
            };
            if request.answer.is_closed() {
                // The caller is gone before anything was sent: nothing needs to be.
                self.in_flight.fetch_sub(1, Relaxed);
                continue;
            }
            let sent_at = *now.get_or_insert_with(Instant::now);
            self.outgoing.extend_from_slice(&request.bytes);
            let Request { skip, answer, .. } = request;
            self.waiting.push_back(Waiting { skip, sent_at, answer });
        }
        Ok(!self.outgoing.is_empty())
    }

    /// Writes what was taken; ready when all of it is gone.
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

    /// Tells calls that are late, and gives up a connection that has been silent for too long.
    fn keep_time(&mut self, context: &mut Context<'_>) -> Result<(), io::Error> {
        while !self.waiting.is_empty() {
            if !self.is_armed {
                let due = self.suspected_at.map_or_else(|| self.due(), |at| at + SECOND_LOOK);
                self.timer.as_mut().reset(due);
                self.is_armed = true;
            }
            // The timer alone says that time has passed: another clock may, before the socket was looked at.
            if self.timer.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.is_armed = false;
            self.find_late()?;
        }
        self.suspected_at = None;
        Ok(())
    }

    /// When the next call is late, or the connection has been silent for too long.
    fn due(&self) -> Instant {
        let silent = self.heard_or_asked_at() + self.max_silence();
        self.waiting.get(self.late).map_or(silent, |next| silent.min(next.sent_at + self.timeout))
    }

    fn find_late(&mut self) -> Result<(), io::Error> {
        let now = Instant::now();
        let Some(suspected_at) = self.suspected_at.take() else {
            if now >= self.due() {
                self.suspected_at = Some(now);
            }
            return Ok(());
        };
        while let Some(next) = self.waiting.get_mut(self.late) {
            if next.sent_at + self.timeout > suspected_at {
                break;
            }
            let answer = std::mem::replace(&mut next.answer, oneshot::channel().0);
            let _ = answer.send(Err(CallError::Timeout));
            self.late += 1;
        }
        if self.heard_or_asked_at() + self.max_silence() <= suspected_at {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }

    /// When Redis last said something, or was asked while nothing was open.
    fn heard_or_asked_at(&self) -> Instant {
        self.waiting.front().map_or(self.heard_at, |first| first.sent_at.max(self.heard_at))
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
        for waiting in driver.waiting.drain(..) {
            let _ = waiting.answer.send(Err(CallError::Closed(Arc::clone(&error))));
        }
        Poll::Ready(error)
    }
}
