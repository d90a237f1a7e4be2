//! Bounds the events that clients have not read yet, of all clients together.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use prometheus::IntGauge;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Budget of bytes that are being sent. A client that does not read holds its part of them, until
/// others wait for it.
#[derive(Debug)]
pub(super) struct OutputBudget {
    max: u32,
    room: Semaphore,
    waiting: AtomicUsize,
    /// Bytes in use.
    pending: IntGauge,
}

/// Bytes of the budget that one client holds, released on drop.
#[derive(Debug)]
pub(super) struct PendingBytes<'b> {
    _room: Option<SemaphorePermit<'b>>,
    pending: &'b IntGauge,
    bytes: i64,
}

/// Counts one more client that waits, until it is dropped: a wait may be cancelled.
struct Waiting<'b>(&'b AtomicUsize);

// === impl OutputBudget ===

impl OutputBudget {
    pub(super) fn new(max: u32, pending: IntGauge) -> Self {
        let room = Semaphore::new(max as usize);
        Self { max, room, waiting: AtomicUsize::new(0), pending }
    }

    /// Takes `bytes`, once others have released them. More than the whole budget count as all of
    /// it.
    pub(super) async fn take(&self, bytes: usize) -> PendingBytes<'_> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.max);
        let room = if let Ok(room) = self.room.try_acquire_many(bytes) {
            Some(room)
        } else {
            let _waiting = Waiting::new(&self.waiting);
            // Never `None`: the semaphore is not closed.
            self.room.acquire_many(bytes).await.ok()
        };
        let bytes = i64::from(bytes);
        self.pending.add(bytes);
        PendingBytes { _room: room, pending: &self.pending, bytes }
    }

    /// Returns true if clients wait for bytes that others hold.
    pub(super) fn is_exhausted(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }
}

// === impl PendingBytes ===

impl Drop for PendingBytes<'_> {
    fn drop(&mut self) {
        self.pending.sub(self.bytes);
    }
}

// === impl Waiting ===

impl<'b> Waiting<'b> {
    fn new(waiting: &'b AtomicUsize) -> Self {
        waiting.fetch_add(1, Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn bytes_are_taken_up_to_the_bound_and_more_wait() {
        let budget = OutputBudget::new(100, IntGauge::new("pending", "-").unwrap());
        let first = budget.take(60).now_or_never().unwrap();
        let second = budget.take(40).now_or_never().unwrap();
        assert_eq!((budget.pending.get(), budget.is_exhausted()), (100, false));
        let mut third = Box::pin(budget.take(1));
        assert!((&mut third).now_or_never().is_none() && budget.is_exhausted());
        drop(second);
        let third = third.now_or_never().unwrap();
        assert_eq!((budget.pending.get(), budget.is_exhausted()), (61, false));
        drop((first, third));
        assert_eq!(budget.pending.get(), 0);
    }

    #[test]
    fn an_event_larger_than_the_budget_is_sent_alone() {
        let budget = OutputBudget::new(100, IntGauge::new("pending", "-").unwrap());
        let all = budget.take(1_000).now_or_never().unwrap();
        assert!(budget.take(1).now_or_never().is_none());
        assert!(!budget.is_exhausted(), "a wait that is cancelled is not counted");
        drop(all);
        assert!(budget.take(1).now_or_never().is_some());
    }
}
