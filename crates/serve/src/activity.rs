//! What a connection is doing.
//!
//! A few atomics that requests and bodies touch on their way, so that one timer a connection is
//! enough: hyper would set one for every request.

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use http::Version;
use tokio::sync::Notify;

use crate::connections::{Connections, EndReason};

/// In how many parts the idle time-out is measured.
pub(crate) const PARTS: usize = 4;

/// One more than the parts between now and the oldest bytes that may still wait, and now itself.
const SLOTS: usize = PARTS + 2;

/// What an HTTP/2 stream takes beside the bytes of its answer: a task, its buffers and headers.
pub(crate) const STREAM_BYTES: usize = 4 * 1024;

/// Changes that the process is not told of, so that small answers touch no shared memory.
pub(crate) const UNREPORTED_BYTES: usize = 32 * 1024;

/// How many bytes of an answer the peer must take to count as reading it.
const PROGRESS_BYTES: usize = 4 * 1024;

/// Requests that begun, in the upper bits, where they may overflow.
const BEGUN: u64 = 1 << 40;
/// Requests that wait for their answer.
const HANDLING: u64 = 1 << 20;
/// Answers whose body is not complete yet.
const OPEN: u64 = 1;
const FIELD: u64 = (1 << 20) - 1;

/// What a connection is doing.
pub(crate) struct Activity {
    connections: Arc<Connections>,
    counts: AtomicU64,
    /// Bytes of answers that the peer has not taken, by the part of time in which it last took some.
    unsent: [AtomicUsize; SLOTS],
    /// The present part of time.
    part: AtomicUsize,
    /// Bytes of requests that have not arrived completely.
    received: AtomicUsize,
    /// Bytes that the socket did not take.
    unwritten: AtomicUsize,
    /// Bytes that it took.
    written: AtomicU64,
    /// What the process was told of all these bytes.
    reported: AtomicUsize,
    /// When the reported bytes last became fewer, in milliseconds of the process.
    moved_at: AtomicU64,
    is_http2: AtomicBool,
    is_leaving: AtomicBool,
    ended: Notify,
    /// One more than the reason why the connection is ended, or nothing.
    end_reason: AtomicUsize,
}

/// A request that waits for its answer.
pub(crate) struct Asked(Option<Arc<Activity>>);

/// An answer whose body is not complete yet.
pub(crate) struct Open(Arc<Activity>);

/// Bytes of an answer that the peer has not taken.
pub(crate) struct Unsent {
    activity: Arc<Activity>,
    part: usize,
    bytes: usize,
    /// Bytes taken since they were last moved to the present.
    taken: usize,
}

/// More bytes wait for peers than may.
#[derive(Debug)]
pub(crate) struct Overloaded;

// === impl Activity ===

impl Activity {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            counts: AtomicU64::new(0),
            unsent: array::from_fn(|_| AtomicUsize::new(0)),
            part: AtomicUsize::new(0),
            received: AtomicUsize::new(0),
            unwritten: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            reported: AtomicUsize::new(0),
            moved_at: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            ended: Notify::new(),
            end_reason: AtomicUsize::new(0),
        }
    }

    /// Counts a request.
    pub(crate) fn begin(self: &Arc<Self>, version: Version) -> Asked {
        if version == Version::HTTP_2 && !self.is_http2.load(Relaxed) {
            self.is_http2.store(true, Relaxed);
        }
        self.counts.fetch_add(BEGUN + HANDLING, Relaxed);
        Asked(Some(Arc::clone(self)))
    }

    /// A number that changes with every request.
    pub(crate) fn begun(&self) -> u64 {
        self.counts.load(Relaxed) / BEGUN
    }

    /// Whether neither a request nor an answer is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        // Of an answer over HTTP/2, hyper may have let go while the peer takes its bytes.
        self.counts.load(Relaxed).is_multiple_of(BEGUN)
            && self.unsent() + self.unwritten.load(Relaxed) == 0
    }

    /// Whether requests came over HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.is_http2.load(Relaxed)
    }

    /// Asks the peer to connect anew for what comes next.
    pub(crate) fn leave(&self) {
        self.is_leaving.store(true, Relaxed);
    }

    /// Whether the peer is to connect anew.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Relaxed)
    }

    /// Counts bytes that are about to be sent; too many of them are refused.
    pub(crate) fn send(self: &Arc<Self>, bytes: usize) -> Result<Unsent, Overloaded> {
        let part = self.part.load(Relaxed);
        self.unsent[part].fetch_add(bytes, Relaxed);
        let unsent = Unsent { activity: Arc::clone(self), part, bytes, taken: 0 };
        let buffered = self.report();
        if buffered > UNREPORTED_BYTES && !self.connections.accepts(self, buffered, bytes) {
            return Err(Overloaded);
        }
        Ok(unsent)
    }

    /// Counts bytes of a request that goes on; too many of them are refused.
    pub(crate) fn receive(&self, bytes: usize) -> Result<(), Overloaded> {
        self.received.fetch_add(bytes, Relaxed);
        let buffered = self.report();
        if buffered <= UNREPORTED_BYTES {
            return Ok(());
        }
        // A peer that sends is not one that has stalled.
        self.moved_at.store(self.connections.now(), Relaxed);
        self.connections.accepts(self, buffered, bytes).then_some(()).ok_or(Overloaded)
    }

    /// Forgets bytes of a request that were [received](Self::receive).
    pub(crate) fn forget(&self, bytes: usize) {
        self.received.fetch_sub(bytes, Relaxed);
        self.report();
    }

    /// Notes what the socket took, and what it did not.
    pub(crate) fn wrote(&self, written: usize, unwritten: usize) {
        // Nobody else writes to the socket.
        self.written.store(self.written.load(Relaxed) + written as u64, Relaxed);
        if self.unwritten.load(Relaxed) != unwritten {
            self.unwritten.store(unwritten, Relaxed);
            self.report();
        }
    }

    /// Bytes that the socket took, and those that it did not.
    pub(crate) fn progress(&self) -> (u64, usize) {
        (self.written.load(Relaxed), self.unwritten.load(Relaxed))
    }

    /// Begins the next part of time. Whether there are bytes that the peer has left alone for
    /// [`PARTS`] of them.
    pub(crate) fn next_part(&self) -> bool {
        let part = (self.part.load(Relaxed) + 1) % SLOTS;
        self.part.store(part, Relaxed);
        self.unsent[(part + 1) % SLOTS].load(Relaxed) > 0
    }

    /// Ends the connection.
    pub(crate) fn end(&self, reason: EndReason) {
        self.end_reason.store(reason as usize + 1, Relaxed);
        self.ended.notify_one();
    }

    /// Whether somebody [ended](Self::end) the connection, which may not know it yet.
    pub(crate) fn is_ending(&self) -> bool {
        self.end_reason.load(Relaxed) > 0
    }

    /// Waits until somebody [ends](Self::end) the connection.
    pub(crate) async fn ended(&self) -> EndReason {
        self.ended.notified().await;
        EndReason::ALL[self.end_reason.load(Relaxed).saturating_sub(1)]
    }

    /// Bytes that the process knows of.
    pub(crate) fn reported(&self) -> usize {
        self.reported.load(Relaxed)
    }

    /// When the peer last took a good part of them, in milliseconds of the process.
    pub(crate) fn moved_at(&self) -> u64 {
        self.moved_at.load(Relaxed)
    }

    /// Bytes of answers that the peer has not taken.
    fn unsent(&self) -> usize {
        self.unsent.iter().map(|bytes| bytes.load(Relaxed)).sum()
    }

    /// Bytes that are buffered for the peer.
    fn buffered(&self) -> usize {
        let counts = self.counts.load(Relaxed);
        let streams = (counts & FIELD) + ((counts / HANDLING) & FIELD);
        let streams = if self.is_http2() { streams as usize } else { 0 };
        let others = self.received.load(Relaxed) + self.unwritten.load(Relaxed);
        self.unsent() + others + streams * STREAM_BYTES
    }

    /// Tells the process how many bytes are buffered, if that changed by much.
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

impl Drop for Activity {
    fn drop(&mut self) {
        self.connections.report(*self.reported.get_mut(), 0);
    }
}

// === impl Asked ===

impl Asked {
    /// The request was answered, with a body that is small and complete.
    pub(crate) fn answered(mut self) {
        if let Some(activity) = self.0.take() {
            activity.counts.fetch_sub(HANDLING, Relaxed);
        }
    }

    /// The request was answered, with a body that takes a while.
    pub(crate) fn opened(mut self) -> Option<Open> {
        let activity = self.0.take()?;
        activity.counts.fetch_sub(HANDLING - OPEN, Relaxed);
        Some(Open(activity))
    }

    /// What the connection is doing.
    pub(crate) fn activity(&self) -> Option<&Arc<Activity>> {
        self.0.as_ref()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The peer no longer waits for the answer.
        if let Some(activity) = self.0.take() {
            activity.counts.fetch_sub(HANDLING, Relaxed);
        }
    }
}

// === impl Open ===

impl Open {
    /// Counts bytes that are about to be sent; too many of them are refused.
    pub(crate) fn send(&self, bytes: usize) -> Result<Unsent, Overloaded> {
        self.0.send(bytes)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.fetch_sub(OPEN, Relaxed);
        self.0.report();
    }
}

// === impl Unsent ===

impl Unsent {
    /// The peer took so many of them.
    pub(crate) fn take(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.activity.unsent[self.part].fetch_sub(bytes, Relaxed);
        self.bytes -= bytes;
        self.taken += bytes;
        let part = self.activity.part.load(Relaxed);
        if self.taken >= PROGRESS_BYTES && part != self.part {
            self.activity.unsent[part].fetch_add(self.bytes, Relaxed);
            self.activity.unsent[self.part].fetch_sub(self.bytes, Relaxed);
            (self.part, self.taken) = (part, 0);
        }
        self.activity.report();
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.activity.unsent[self.part].fetch_sub(self.bytes, Relaxed);
        self.activity.report();
    }
}

#[cfg(test)]
mod tests;
