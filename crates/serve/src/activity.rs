//! Requests in flight, unsent bytes and progress of a connection.
//!
//! Requests and bodies update a few atomics, so that one timer per connection is enough: hyper
//! would set one for each request.

mod expendable;
mod guards;

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::sync::Notify;

pub(crate) use self::{
    expendable::{Expendable, StallMark},
    guards::{InFlightRequest, OpenResponse, UnsentBytes},
};
use crate::connections::{Connections, EndReason};

/// Number of intervals of the idle timeout.
pub(crate) const INTERVALS: usize = 4;

/// One slot per interval of the timeout, one for the current interval and one for older bytes.
const SLOTS: usize = INTERVALS + 2;

/// Memory of an HTTP/2 stream in addition to its response: a task, buffers and headers.
pub(crate) const STREAM_BYTES: usize = 4 * 1024;

/// Changes below this are not reported, so that small responses do not touch shared memory.
pub(crate) const UNREPORTED_BYTES: usize = 32 * 1024;

/// Number of bytes that a peer has to read to make progress.
const PROGRESS_BYTES: usize = 4 * 1024;

/// Requests started, in the upper bits, where they may overflow.
const STARTED: u64 = 1 << 40;
/// Requests without a response.
const HANDLING: u64 = 1 << 20;
/// Responses with an incomplete body.
const OPEN: u64 = 1;
const FIELD: u64 = (1 << 20) - 1;

/// State of a connection.
pub(crate) struct Activity {
    connections: Arc<Connections>,
    counts: AtomicU64,
    /// Unsent bytes of responses, by the interval of their last progress.
    unsent: [AtomicUsize; SLOTS],
    /// The current interval.
    interval: AtomicUsize,
    /// Bytes of incomplete requests, and of the heads of HTTP/2 requests.
    received: AtomicUsize,
    /// Bytes of incomplete requests, since the start of the connection.
    received_in_total: AtomicU64,
    /// Requests whose handlers wait for the next bytes of the body.
    awaited_bodies: AtomicU64,
    /// Bytes that the socket did not accept.
    unwritten: AtomicUsize,
    /// Encrypted bytes that the socket did not accept, in addition.
    unwritten_encrypted: AtomicUsize,
    /// Bytes that the socket accepted.
    written: AtomicU64,
    /// Buffered bytes, as last reported to the process.
    reported: AtomicUsize,
    /// Time when the reported bytes last decreased, in milliseconds since the start.
    moved_at: AtomicU64,
    /// Set by data of open requests and responses, cleared by the watchdog.
    has_data: AtomicBool,
    /// [`started`](Self::started) plus one when the connection was found quiet, or 0.
    quiet_at: AtomicU64,
    stall: StallMark,
    /// Time of its start, in milliseconds since that of the process.
    opened_at: u64,
    is_http2: AtomicBool,
    is_leaving: AtomicBool,
    is_abandoned: AtomicBool,
    is_upgraded: AtomicBool,
    ended: Notify,
    /// Reason for closing the connection plus one, or 0.
    end_reason: AtomicUsize,
}

/// Too many buffered bytes.
#[derive(Debug)]
pub(crate) struct Overloaded;

// === impl Activity ===

impl Activity {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        let opened_at = connections.now();
        Self {
            connections,
            counts: AtomicU64::new(0),
            unsent: array::from_fn(|_| AtomicUsize::new(0)),
            interval: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            received_in_total: AtomicU64::new(0),
            awaited_bodies: AtomicU64::new(0),
            unwritten: AtomicUsize::new(0),
            unwritten_encrypted: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            reported: AtomicUsize::new(0),
            moved_at: AtomicU64::new(0),
            has_data: AtomicBool::new(false),
            quiet_at: AtomicU64::new(0),
            stall: StallMark::default(),
            opened_at,
            is_http2: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            is_upgraded: AtomicBool::new(false),
            ended: Notify::new(),
            end_reason: AtomicUsize::new(0),
        }
    }

    /// Counts a request over HTTP/1, which has one at a time.
    pub(crate) fn start_http1(self: &Arc<Self>) -> InFlightRequest {
        self.counts.fetch_add(STARTED + HANDLING, Relaxed);
        InFlightRequest::new(self, 0)
    }

    /// Counts a request over HTTP/2 with a head of this many bytes, unless there are too many.
    pub(crate) fn start_http2(
        self: &Arc<Self>,
        head: usize,
    ) -> Result<InFlightRequest, Overloaded> {
        if !self.is_http2() {
            self.is_http2.store(true, Relaxed);
        }
        let counts = self.counts.fetch_add(STARTED + HANDLING, Relaxed);
        let received = self.received.fetch_add(head, Relaxed) + head;
        let request = InFlightRequest::new(self, head);
        if received + streams(counts) * STREAM_BYTES <= UNREPORTED_BYTES {
            return Ok(request);
        }
        self.accept_received(head + STREAM_BYTES).map(|()| request)
    }

    /// A number that changes with every request.
    pub(crate) fn started(&self) -> u64 {
        self.counts.load(Relaxed) / STARTED
    }

    /// Returns `true` if no request is in flight and no response is unsent.
    pub(crate) fn is_idle(&self) -> bool {
        // Over HTTP/2, hyper may have dropped a response whose bytes are still unsent.
        self.counts.load(Relaxed).is_multiple_of(STARTED) && self.unsent() + self.unwritten() == 0
    }

    /// Returns `true` if requests came over HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2.load(Relaxed)
    }

    /// Hands the connection to the handler that upgraded it. It keeps its slot; its buffers are the
    /// handler's to bound.
    pub(crate) fn upgrade(&self) {
        self.is_upgraded.store(true, Relaxed);
        self.report();
    }

    /// Returns `true` if the connection was upgraded.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.is_upgraded.load(Relaxed)
    }

    /// Asks the peer to use another connection, with the response to its next request.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Relaxed);
    }

    /// Asks the peer to use another connection, now: it has sent no request for long.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Relaxed);
        self.leave();
    }

    /// Returns `true` if the peer is asked to use another connection.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Returns `true` if an HTTP/2 peer has to get its GOAWAY now.
    ///
    /// Clients that do not repeat a request which they could not send, such as tonic's, lose the
    /// one that they start between a GOAWAY and the end of the connection. They close it as soon as
    /// they have no stream left. So they get the GOAWAY while exactly one is open: at its end, they
    /// have no time to start another one.
    pub(crate) fn has_to_go_away(&self) -> bool {
        self.is_leaving()
            && self.is_http2()
            && (self.is_abandoned.load(Relaxed) || self.streams() <= 1 && !self.is_idle())
    }

    /// Counts bytes that are about to be sent, unless there are too many.
    pub(crate) fn send(self: &Arc<Self>, bytes: usize) -> Result<UnsentBytes, Overloaded> {
        let interval = self.interval.load(Relaxed);
        self.has_data.store(true, Relaxed);
        self.unsent[interval].fetch_add(bytes, Relaxed);
        let unsent = UnsentBytes { activity: Arc::clone(self), interval, bytes, taken: 0 };
        let buffered = self.report();
        if buffered > UNREPORTED_BYTES && !self.connections.accepts(self, buffered, bytes) {
            return Err(Overloaded);
        }
        Ok(unsent)
    }

    /// Counts bytes of an incomplete request, unless there are too many.
    pub(crate) fn receive(&self, bytes: usize) -> Result<(), Overloaded> {
        self.has_data.store(true, Relaxed);
        self.received.fetch_add(bytes, Relaxed);
        self.received_in_total.fetch_add(bytes as u64, Relaxed);
        self.accept_received(bytes)
    }

    /// Reports the buffered bytes, of which `bytes` have just been received.
    fn accept_received(&self, bytes: usize) -> Result<(), Overloaded> {
        let buffered = self.report();
        if buffered <= UNREPORTED_BYTES {
            return Ok(());
        }
        // A peer that sends has not stalled.
        self.moved_at.store(self.connections.now(), Relaxed);
        self.connections.accepts(self, buffered, bytes).then_some(()).ok_or(Overloaded)
    }

    /// Releases bytes of a request that were [received](Self::receive).
    pub(crate) fn release(&self, bytes: usize) {
        self.received.fetch_sub(bytes, Relaxed);
        self.report();
    }

    /// Records whether a handler waits for the next bytes of a body, after a change.
    pub(crate) fn set_awaiting_body(&self, is_awaiting: bool) {
        if is_awaiting {
            self.awaited_bodies.fetch_add(1, Relaxed);
        } else {
            self.awaited_bodies.fetch_sub(1, Relaxed);
        }
    }

    /// Records the bytes that the socket accepted, and those that it did not.
    pub(crate) fn wrote(&self, written: usize, unwritten: usize) {
        // The only writer.
        self.written.store(self.written.load(Relaxed) + written as u64, Relaxed);
        if self.unwritten.load(Relaxed) != unwritten {
            self.unwritten.store(unwritten, Relaxed);
            self.report();
        }
    }

    /// Records encrypted bytes: those that the socket accepted, and those that it did not.
    ///
    /// TLS accepts up to its own buffer before [`wrote`](Self::wrote) reports unwritten bytes.
    pub(crate) fn wrote_encrypted(&self, written: usize, unwritten: usize) {
        self.written.store(self.written.load(Relaxed) + written as u64, Relaxed);
        if self.unwritten_encrypted.load(Relaxed) != unwritten {
            self.unwritten_encrypted.store(unwritten, Relaxed);
            self.report();
        }
    }

    /// Bytes that the socket accepted, and bytes that it did not.
    pub(crate) fn progress(&self) -> (u64, usize) {
        (self.written.load(Relaxed), self.unwritten())
    }

    /// Starts the next interval. Returns `true` if there are bytes without progress for
    /// [`INTERVALS`].
    pub(crate) fn next_interval(&self) -> bool {
        let interval = (self.interval.load(Relaxed) + 1) % SLOTS;
        self.interval.store(interval, Relaxed);
        self.unsent[(interval + 1) % SLOTS].load(Relaxed) > 0
    }

    /// Closes the connection.
    pub(crate) fn end(&self, reason: EndReason) {
        self.end_reason.store(reason as usize + 1, Relaxed);
        self.ended.notify_one();
    }

    /// Returns `true` if [`end`](Self::end) was called. The connection may still be open.
    pub(crate) fn is_ending(&self) -> bool {
        self.end_reason.load(Relaxed) > 0
    }

    /// Waits for [`end`](Self::end).
    pub(crate) async fn ended(&self) -> EndReason {
        self.ended.notified().await;
        EndReason::ALL[self.end_reason.load(Relaxed).saturating_sub(1)]
    }

    /// Buffered bytes, as last reported to the process.
    pub(crate) fn reported(&self) -> usize {
        self.reported.load(Relaxed)
    }

    /// Time of the last progress, in milliseconds since the start.
    pub(crate) fn moved_at(&self) -> u64 {
        self.moved_at.load(Relaxed)
    }

    /// Unsent bytes of responses.
    fn unsent(&self) -> usize {
        self.unsent.iter().map(|bytes| bytes.load(Relaxed)).sum()
    }

    /// Requests without a response, and responses with an incomplete body.
    fn streams(&self) -> usize {
        streams(self.counts.load(Relaxed))
    }

    /// Bytes that the socket did not accept.
    fn unwritten(&self) -> usize {
        self.unwritten.load(Relaxed) + self.unwritten_encrypted.load(Relaxed)
    }

    /// Buffered bytes.
    fn buffered(&self) -> usize {
        if self.is_upgraded() {
            return 0;
        }
        let streams = if self.is_http2() { self.streams() } else { 0 };
        let others = self.received.load(Relaxed) + self.unwritten();
        self.unsent() + others + streams * STREAM_BYTES
    }

    /// Reports the buffered bytes to the process, if they have changed by much.
    fn report(&self) -> usize {
        let (buffered, known) = (self.buffered(), self.reported.load(Relaxed));
        let more = buffered >= known + UNREPORTED_BYTES;
        let less = known >= buffered + UNREPORTED_BYTES || known > 0 && buffered <= known / 2;
        if more || less {
            let before = self.reported.swap(buffered, Relaxed);
            self.connections.report(before, buffered);
            if before == 0 || buffered < before {
                self.moved_at.store(self.connections.now(), Relaxed);
            }
        }
        buffered
    }
}

/// Number of streams in flight.
const fn streams(counts: u64) -> usize {
    ((counts & FIELD) + ((counts / HANDLING) & FIELD)) as usize
}

impl Drop for Activity {
    fn drop(&mut self) {
        self.connections.report(*self.reported.get_mut(), 0);
    }
}

#[cfg(test)]
mod tests;
