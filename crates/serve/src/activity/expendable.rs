//! Connections that may make room for a new one.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Activity, FIELD, HANDLING, PROGRESS_BYTES};

/// Time for a new connection to send its first request, in milliseconds.
const NEW_MILLIS: u64 = 1_000;

/// Time without progress after which a peer counts as stalled, in milliseconds.
const STALLED_MILLIS: u64 = 2_000;

/// Reason that a connection may make room for a new one, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expendable {
    /// It has no request.
    Idle,
    /// Its responses are open, and no data has moved for the idle timeout.
    Quiet,
    /// Its requests are incomplete or its responses unread, and its peer makes no progress.
    Stalled,
    /// It was just opened, and its first request is probably on its way.
    New,
}

/// Progress of a connection as the last scan for an expendable one found it.
///
/// Scans keep it, because a clock would cost every request; they run only while there is no room.
#[derive(Default)]
pub(crate) struct StallMark {
    progress: AtomicU64,
    /// Time of the first scan that found this progress, in milliseconds since the start.
    since: AtomicU64,
}

impl Activity {
    /// Returns the reason that it may make room for a new connection, if any. A connection counts
    /// as stalled only if an earlier call has found it without progress.
    pub(crate) fn expendable(&self, now: u64) -> Option<Expendable> {
        let is_new = || self.started() == 0 && now.saturating_sub(self.opened_at) < NEW_MILLIS;
        // An upgraded one has no request in flight, and is its handler's to close.
        match (self.is_ending() || self.is_upgraded(), self.is_idle()) {
            (true, _) => None,
            (false, true) if is_new() => Some(Expendable::New),
            (false, true) => Some(Expendable::Idle),
            (false, false) if self.is_quiet() => Some(Expendable::Quiet),
            (false, false) => self.is_stalled(now).then_some(Expendable::Stalled),
        }
    }

    /// Records whether there was neither a request nor data for the idle timeout.
    pub(crate) fn set_quiet(&self, is_quiet: bool) {
        self.quiet_at.store(if is_quiet { self.started() + 1 } else { 0 }, Relaxed);
    }

    /// Returns `true` if data has moved since the last call.
    pub(crate) fn take_data(&self) -> bool {
        self.has_data.swap(false, Relaxed)
    }

    /// Returns `true` if it was found quiet, and nothing has happened since.
    ///
    /// A request without a response is never quiet, nor is an unread response: both have timeouts
    /// of their own.
    fn is_quiet(&self) -> bool {
        let is_unchanged = self.quiet_at.load(Relaxed) == self.started() + 1;
        is_unchanged
            && self.handling() == 0
            && !self.has_data.load(Relaxed)
            && self.unsent() + self.unwritten() == 0
    }

    /// Returns `true` if only the peer can go on, and it has not done so for [`STALLED_MILLIS`].
    fn is_stalled(&self, now: u64) -> bool {
        let is_waiting = self.awaits_peer();
        let progress = self.peer_progress();
        if !is_waiting || self.stall.progress.swap(progress, Relaxed) != progress {
            self.stall.since.store(now, Relaxed);
        }
        is_waiting && now.saturating_sub(self.stall.since.load(Relaxed)) >= STALLED_MILLIS
    }

    /// Returns `true` if responses are unsent, or all requests without a response wait for their
    /// bodies. Bodies of open responses, such as those of gRPC streams, may wait for long.
    fn awaits_peer(&self) -> bool {
        let handling = self.handling();
        let awaits_bodies = handling > 0 && self.awaited_bodies.load(Relaxed) >= handling;
        awaits_bodies || self.unsent() + self.unwritten() > 0
    }

    /// A number that changes with every request, and with [`PROGRESS_BYTES`] in either direction:
    /// single bytes do not keep a slot. Never 0, the initial mark.
    fn peer_progress(&self) -> u64 {
        let chunks = |bytes: &AtomicU64| bytes.load(Relaxed) / PROGRESS_BYTES as u64;
        1 + self.started() + chunks(&self.written) + chunks(&self.received_in_total)
    }

    /// Requests without a response.
    fn handling(&self) -> u64 {
        (self.counts.load(Relaxed) / HANDLING) & FIELD
    }
}
