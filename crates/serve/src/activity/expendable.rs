//! Connections that may make room for a new one.

use std::sync::atomic::Ordering::Relaxed;

use super::{Activity, FIELD, HANDLING, STARTED};

/// Time for a new connection to send its first request, in milliseconds.
const NEW_MILLIS: u64 = 1_000;

/// Reason that a connection may make room for a new one, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expendable {
    /// It has no request.
    Idle,
    /// Its responses are open, and no data has moved for the idle timeout.
    Quiet,
    /// It was just opened, and its first request is probably on its way.
    New,
}

impl Activity {
    /// Returns the reason that it may make room for a new connection, if any.
    pub(crate) fn expendable(&self, now: u64) -> Option<Expendable> {
        let is_new = || self.started() == 0 && now.saturating_sub(self.opened_at) < NEW_MILLIS;
        // An upgraded one has no request in flight, and is its handler's to close.
        match (self.is_ending() || self.is_upgraded(), self.is_idle()) {
            (true, _) => None,
            (false, true) if is_new() => Some(Expendable::New),
            (false, true) => Some(Expendable::Idle),
            (false, false) => self.is_quiet().then_some(Expendable::Quiet),
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
        let counts = self.counts.load(Relaxed);
        let is_handling = (counts / HANDLING) & FIELD > 0;
        let is_unchanged = self.quiet_at.load(Relaxed) == counts / STARTED + 1;
        is_unchanged
            && !is_handling
            && !self.has_data.load(Relaxed)
            && self.unsent() + self.unwritten() == 0
    }
}
