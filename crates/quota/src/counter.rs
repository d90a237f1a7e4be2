//! Counters: a fast copy of the ledger's usage.

mod store;

use async_trait::async_trait;
use headgate::StoreError;

pub use self::store::StoreCounter;
use crate::{ActivePolicy, PeriodSpan};

/// A fast copy of the ledger's usage. It may lose everything at any time.
///
/// # Contract
///
/// - [`raise`](Self::raise) never lowers a counter. Calls commute and may be repeated: a counter
///   shows the maximum of all calls since the last [`forget`](Self::forget).
/// - Counters are raised to committed usage only: used and reserved units. A counter that showed
///   more than a later read of the ledger therefore proves that units came back, by a reset, a
///   refund or the end of a reservation.
#[async_trait]
pub trait QuotaCounter: Send + Sync {
    /// Returns `true` if every process that shares the ledger sees the same counters.
    fn is_shared(&self) -> bool;

    /// Raises the counter to at least `usage`.
    async fn raise(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        usage: CommittedUsage,
    ) -> Result<RaiseOutcome, StoreError>;

    /// Returns the usage it shows; `None` if there is no counter.
    async fn read(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
    ) -> Result<Option<u64>, StoreError>;

    /// Removes the counter; the next raise creates it again.
    async fn forget(&self, policy: &ActivePolicy, span: &PeriodSpan) -> Result<(), StoreError>;
}

/// Usage of a policy after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommittedUsage {
    /// Used and reserved units in the ledger.
    pub used: u64,
    /// Part of it that the counter probably does not show yet.
    pub added: u64,
}

/// Outcome of a raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaiseOutcome {
    /// The counter was lower before.
    Raised,
    /// The counter was at least as high before.
    Unchanged,
}

// === impl CommittedUsage ===

impl CommittedUsage {
    /// Usage of which the counter may show nothing yet.
    pub const fn from_total(used: u64) -> Self {
        Self { used, added: used }
    }
}
