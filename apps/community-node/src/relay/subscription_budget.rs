//! Bounds the memory of subscriptions, of all clients together.

use std::sync::Arc;

use prometheus::IntGauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Budget of bytes that subscriptions take.
#[derive(Debug)]
pub(super) struct SubscriptionBudget {
    room: Arc<Semaphore>,
    /// Bytes in use.
    used: IntGauge,
}

/// Bytes of one subscription, released on drop.
#[derive(Debug)]
pub(super) struct SubscriptionBytes {
    permit: OwnedSemaphorePermit,
    used: IntGauge,
}

// === impl SubscriptionBudget ===

impl SubscriptionBudget {
    pub(super) fn new(max: u32, used: IntGauge) -> Self {
        Self { room: Arc::new(Semaphore::new(max as usize)), used }
    }

    /// Takes `bytes`; `None` if not as many are left.
    pub(super) fn take(&self, bytes: usize) -> Option<SubscriptionBytes> {
        let bytes = u32::try_from(bytes).ok()?;
        let permit = Arc::clone(&self.room).try_acquire_many_owned(bytes).ok()?;
        self.used.add(bytes.into());
        Some(SubscriptionBytes { permit, used: self.used.clone() })
    }
}

// === impl SubscriptionBytes ===

impl SubscriptionBytes {
    pub(super) fn count(&self) -> usize {
        self.permit.num_permits()
    }
}

impl Drop for SubscriptionBytes {
    fn drop(&mut self) {
        self.used.sub(self.count() as i64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_up_to_the_bound_and_returned() {
        let budget = SubscriptionBudget::new(100, IntGauge::new("used", "-").unwrap());
        let (first, second) = (budget.take(60).unwrap(), budget.take(40).unwrap());
        assert_eq!((first.count(), budget.used.get()), (60, 100));
        assert!(budget.take(1).is_none());
        drop(first);
        assert_eq!(budget.used.get(), 40);
        assert!(budget.take(61).is_none() && budget.take(60).is_some());
        drop(second);
        assert_eq!(budget.used.get(), 0);
    }
}
