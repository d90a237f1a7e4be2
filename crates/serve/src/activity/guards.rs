//! Parts of the activity of a connection that end when they are dropped.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use super::{Activity, HANDLING, OPEN, Overloaded, PROGRESS_BYTES};

/// A request without a response.
pub(crate) struct InFlightRequest {
    activity: Option<Arc<Activity>>,
    /// Counted bytes of its head.
    head: usize,
}

/// A response with an incomplete body.
pub(crate) struct OpenResponse {
    activity: Arc<Activity>,
    /// Counted bytes of the head of the request, which its handler may still hold.
    head: usize,
}

/// Unsent bytes of a response.
pub(crate) struct UnsentBytes {
    pub(super) activity: Arc<Activity>,
    pub(super) interval: usize,
    pub(super) bytes: usize,
    /// Bytes sent since the last change of the interval.
    pub(super) taken: usize,
}

// === impl InFlightRequest ===

impl InFlightRequest {
    pub(super) fn new(activity: &Arc<Activity>, head: usize) -> Self {
        Self { activity: Some(Arc::clone(activity)), head }
    }

    /// Ends the request: its response is small and complete.
    pub(crate) fn finish(self) {
        drop(self);
    }

    /// Starts the response, whose body is not complete.
    pub(crate) fn open_response(mut self) -> Option<OpenResponse> {
        let activity = self.activity.take()?;
        activity.counts.fetch_sub(HANDLING - OPEN, Relaxed);
        Some(OpenResponse { activity, head: self.head })
    }

    /// The activity of the connection.
    pub(crate) fn activity(&self) -> Option<&Arc<Activity>> {
        self.activity.as_ref()
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        // It has ended, or was cancelled.
        if let Some(activity) = self.activity.take() {
            activity.counts.fetch_sub(HANDLING, Relaxed);
            if self.head > 0 {
                activity.release(self.head);
            }
        }
    }
}

// === impl OpenResponse ===

impl OpenResponse {
    /// Counts bytes that are about to be sent, unless there are too many.
    pub(crate) fn send(&self, bytes: usize) -> Result<UnsentBytes, Overloaded> {
        self.activity.send(bytes)
    }
}

impl Drop for OpenResponse {
    fn drop(&mut self) {
        self.activity.counts.fetch_sub(OPEN, Relaxed);
        self.activity.release(self.head);
    }
}

// === impl UnsentBytes ===

impl UnsentBytes {
    /// Records that the peer has read `bytes`.
    pub(crate) fn take(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.activity.unsent[self.interval].fetch_sub(bytes, Relaxed);
        self.bytes -= bytes;
        self.taken += bytes;
        let interval = self.activity.interval.load(Relaxed);
        if self.taken >= PROGRESS_BYTES && interval != self.interval {
            self.activity.unsent[interval].fetch_add(self.bytes, Relaxed);
            self.activity.unsent[self.interval].fetch_sub(self.bytes, Relaxed);
            (self.interval, self.taken) = (interval, 0);
        }
        self.activity.report();
    }
}

impl Drop for UnsentBytes {
    fn drop(&mut self) {
        self.activity.unsent[self.interval].fetch_sub(self.bytes, Relaxed);
        self.activity.report();
    }
}
