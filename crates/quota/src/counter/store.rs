//! Counters as calendar windows of the engine, on any store.

use std::sync::Arc;

use async_trait::async_trait;
use headgate::{Batch, Check, Cost, Key, KeySpace, Limit, Outcome, Store, StoreError, Verb};

use super::{CommittedUsage, QuotaCounter, RaiseOutcome};
use crate::{ActivePolicy, PeriodSpan};

/// Counts on a [`Store`], under the key `quota:<policy>:<period>`.
pub struct StoreCounter {
    store: Arc<dyn Store>,
    prefix: String,
    shared: bool,
}

/// Maximum number of store calls per raise. Each further call means that another process raised or
/// removed the counter in between; the next commit raises it again.
const MAX_ATTEMPTS: u32 = 8;

// === impl StoreCounter ===

impl StoreCounter {
    /// Default prefix of keys.
    pub const PREFIX: &'static str = "quota:";

    /// Creates counters on `store`, which is `shared` if other processes use it, too.
    pub fn new(store: Arc<dyn Store>, prefix: impl Into<String>, shared: bool) -> Self {
        Self { store, prefix: prefix.into(), shared }
    }

    async fn apply(
        &self,
        verb: Verb,
        limit: &Limit,
        (policy, span): (&ActivePolicy, &PeriodSpan),
        amount: u64,
    ) -> Result<Outcome, StoreError> {
        let suffix = format!(":{}", span.name);
        let space = KeySpace::new(&self.prefix, &suffix);
        // Ids and amounts are valid, so that these errors cannot occur.
        let invalid = |error: &dyn ToString| StoreError::Corrupt(error.to_string());
        let key = Key::new(policy.policy().id.as_str()).map_err(|error| invalid(&error))?;
        let cost = Cost::new(amount).map_err(|error| invalid(&error))?;
        let check = Check::new(key.within(&space), limit, cost).map_err(|error| invalid(&error))?;
        let outcomes = self.store.apply(verb, &Batch::from(check)).await?;
        // Ignore degraded outcomes, which the store did not decide.
        let own = outcomes.first().filter(|outcome| outcome.degraded.is_none());
        own.copied().ok_or(StoreError::BreakerOpen)
    }
}

#[async_trait]
impl QuotaCounter for StoreCounter {
    fn is_shared(&self) -> bool {
        self.shared
    }

    /// Acquires the missing units under a limit of `used`. The store admits that only if the
    /// counter shows no more than was assumed, so that nothing is counted twice.
    async fn raise(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        usage: CommittedUsage,
    ) -> Result<RaiseOutcome, StoreError> {
        let CommittedUsage { used, added } = usage;
        if used == 0 {
            return Ok(RaiseOutcome::Unchanged);
        }
        let limit =
            policy.limit_of(used).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let (mut missing, mut raised) = (added.clamp(1, used), RaiseOutcome::Unchanged);
        for _ in 0..MAX_ATTEMPTS {
            let outcome = self.apply(Verb::Acquire, &limit, (policy, span), missing).await?;
            if outcome.allowed {
                raised = RaiseOutcome::Raised;
            }
            missing = outcome.remaining;
            if missing == 0 {
                break;
            }
        }
        Ok(raised)
    }

    async fn read(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
    ) -> Result<Option<u64>, StoreError> {
        let outcome = self.apply(Verb::Peek, policy.largest(), (policy, span), 1).await?;
        Ok((!outcome.reset_after.is_zero()).then_some(outcome.limit - outcome.remaining))
    }

    async fn forget(&self, policy: &ActivePolicy, span: &PeriodSpan) -> Result<(), StoreError> {
        self.apply(Verb::Reset, policy.largest(), (policy, span), 1).await.map(drop)
    }
}

impl std::fmt::Debug for StoreCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreCounter").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
