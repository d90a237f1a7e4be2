//! The fast copy of the ledger's usage.

mod store;

use async_trait::async_trait;
use headgate::StoreError;

pub use self::store::StoreCounter;
use crate::{ActivePolicy, Span};

/// Shows usage of the ledger where it can be read quickly. It may lose everything at any time.
///
/// Its contract:
///
/// - [`raise`](Self::raise) only ever raises. Calls commute and may be repeated: a counter shows the
///   most that any call since the last [`forget`](Self::forget) said.
/// - Only what is committed is ever raised to. A counter therefore shows more than the ledger only
///   if usage was reset, and what it showed before a look at the ledger proves that.
#[async_trait]
pub trait QuotaCounter: Send + Sync {
    /// Whether every process that shares the ledger sees the same counters.
    fn is_shared(&self) -> bool;

    /// Makes it show at least what `standing` says.
    async fn raise(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        standing: Standing,
    ) -> Result<Raised, StoreError>;

    /// Usage that it shows; `None` where there is no counter.
    async fn read(&self, policy: &ActivePolicy, span: &Span) -> Result<Option<u64>, StoreError>;

    /// Forgets it: the next raise makes it again.
    async fn forget(&self, policy: &ActivePolicy, span: &Span) -> Result<(), StoreError>;
}

/// Usage of a policy after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Usage in the ledger.
    pub used: u64,
    /// Part of it that the counter probably does not show yet.
    pub added: u64,
}

/// Outcome of a raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// It showed less before.
    FromLess,
    /// It showed as much, or more, before.
    NotNeeded,
}

// === impl Standing ===

impl Standing {
    /// Usage of which a counter may show nothing.
    pub const fn of(used: u64) -> Self {
        Self { used, added: used }
    }
}
