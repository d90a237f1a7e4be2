//! The fast counter beside the ledger.

mod store;

use async_trait::async_trait;
use headgate::StoreError;

pub use self::store::StoreCounter;
use crate::{ActivePolicy, Span};

/// Counts usage quickly. It may lose everything at any time, and may count what the ledger did
/// not take: the ledger decides.
#[async_trait]
pub trait QuotaCounter: Send + Sync {
    /// Whether every process that shares the ledger sees the same counters, so that they can be shown.
    fn is_shared(&self) -> bool;

    /// Takes `amount` if it fits.
    async fn take(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        amount: u64,
    ) -> Result<Taken, StoreError>;

    /// Gives back what was taken.
    async fn give_back(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        amount: u64,
    ) -> Result<(), StoreError>;

    /// How much is used; `None` where there is no counter.
    async fn read(&self, policy: &ActivePolicy, span: &Span) -> Result<Option<u64>, StoreError>;

    /// Makes it show `used`.
    async fn set(&self, policy: &ActivePolicy, span: &Span, used: u64) -> Result<(), StoreError>;

    /// Forgets it: it will be made again when somebody needs it.
    async fn forget(&self, policy: &ActivePolicy, span: &Span) -> Result<(), StoreError>;
}

/// What a counter says to an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether it fitted.
    pub allowed: bool,
    /// How much is used after it.
    pub used: u64,
}
