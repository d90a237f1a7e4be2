use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{BatchLimiter, Reservation, SettleError, Settlement, Spent, Usage};
use tokio::runtime::Handle;
use tracing::warn;

/// What becomes of a reservation whose request ends without an answer: the client is gone, or the
/// handler failed or panicked. Also of one that a handler kept for a stream, and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// What was not charged returns.
    Cancel,
    /// Everything that it holds stays charged.
    Keep,
}

/// What each limit of an [`Estimate`](crate::Estimate) was charged, in its order: for the
/// extensions of a response, in place of one [`Spent`] for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentEach(pub Vec<Spent>);

/// The units that are reserved for a request, in its extensions.
///
/// A handler that streams takes a clone along with its response body. It charges what it produces,
/// and stops when nothing is held any more; what is left when the last clone is dropped is subject
/// to [`OnDrop`].
#[derive(Clone)]
pub struct ReservedUnits(Arc<Held>);

struct Held {
    limiter: BatchLimiter,
    reservation: Reservation,
    lease: Duration,
    on_drop: OnDrop,
    ended: AtomicBool,
}

// === impl ReservedUnits ===

impl ReservedUnits {
    pub(super) fn new(
        limiter: BatchLimiter,
        reservation: Reservation,
        lease: Duration,
        on_drop: OnDrop,
    ) -> Self {
        let ended = AtomicBool::new(false);
        Self(Arc::new(Held { limiter, reservation, lease, on_drop, ended }))
    }

    /// Charges what was produced, the same under every limit, and renews the reservation:
    /// [`BatchLimiter::charge`].
    pub async fn charge(&self, units: u64) -> Result<Usage, SettleError> {
        let Held { limiter, reservation, lease, .. } = &*self.0;
        limiter.charge(reservation, units, *lease).await
    }

    /// Charges what was produced under each limit, in the order of the estimate.
    pub async fn charge_each(&self, units: &[u64]) -> Result<Usage, SettleError> {
        let Held { limiter, reservation, lease, .. } = &*self.0;
        limiter.charge_each(reservation, units, *lease).await
    }

    /// Charges what was produced in all, less what was charged before, the same under every limit,
    /// and renews the reservation. It can be repeated: [`BatchLimiter::charge_up_to`].
    pub async fn charge_up_to(&self, total: u64) -> Result<Usage, SettleError> {
        let Held { limiter, reservation, lease, .. } = &*self.0;
        limiter.charge_up_to(reservation, total, *lease).await
    }

    /// Charges what was produced in all under each limit, in the order of the estimate.
    pub async fn charge_each_up_to(&self, totals: &[u64]) -> Result<Usage, SettleError> {
        let Held { limiter, reservation, lease, .. } = &*self.0;
        limiter.charge_each_up_to(reservation, totals, *lease).await
    }

    /// Ends the reservation for what was spent in all, the same under every limit.
    pub async fn settle(&self, spent: Spent) -> Result<Vec<Settlement>, SettleError> {
        self.0.ended.store(true, Relaxed);
        self.0.limiter.settle(&self.0.reservation, spent).await
    }

    /// Ends the reservation for what was spent under each limit, in the order of the estimate.
    pub async fn settle_each(&self, spent: &[Spent]) -> Result<Vec<Settlement>, SettleError> {
        self.0.ended.store(true, Relaxed);
        self.0.limiter.settle_each(&self.0.reservation, spent).await
    }

    /// Keeps what was reserved, unless a handler has kept a clone.
    pub(super) async fn keep(self) {
        let Some(held) = Arc::into_inner(self.0) else { return };
        if held.ended.swap(true, Relaxed) {
            return;
        }
        if let Err(error) = held.limiter.commit(held.reservation.clone()).await {
            warn!(%error, "failed to commit a reservation; it expires");
        }
    }
}

impl fmt::Debug for ReservedUnits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservedUnits")
            .field("id", &self.0.reservation.id())
            .finish_non_exhaustive()
    }
}

// === impl Held ===

impl Drop for Held {
    fn drop(&mut self) {
        // Without a runtime it expires.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.ended.swap(true, Relaxed) {
            return;
        }
        let (limiter, reservation) = (self.limiter.clone(), self.reservation.clone());
        let on_drop = self.on_drop;
        runtime.spawn(async move {
            let ended = match on_drop {
                OnDrop::Cancel => limiter.cancel(reservation).await,
                OnDrop::Keep => limiter.commit(reservation).await,
            };
            if let Err(error) = ended {
                warn!(%error, "failed to end a reservation; it expires");
            }
        });
    }
}
