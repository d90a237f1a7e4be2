//! Counters on the engine's calendar windows, on any store.

use std::sync::Arc;

use async_trait::async_trait;
use headgate::{Batch, Check, Cost, Key, Limit, Outcome, Space, Store, StoreError, Verb};

use super::{QuotaCounter, Raised, Standing};
use crate::{ActivePolicy, Span};

/// Counts on a [`Store`], under the key `quota:<policy>:<period>`.
pub struct StoreCounter {
    store: Arc<dyn Store>,
    prefix: String,
    shared: bool,
}

/// Calls that one raise may take. Each further one means that another process raised the counter
/// meanwhile, or forgot it; the next commit raises it again.
const TRIES: u32 = 8;

// === impl StoreCounter ===

impl StoreCounter {
    /// What keys begin with unless said otherwise.
    pub const PREFIX: &'static str = "quota:";

    /// Counts on `store`, which other processes use too if it is `shared`.
    pub fn new(store: Arc<dyn Store>, prefix: impl Into<String>, shared: bool) -> Self {
        Self { store, prefix: prefix.into(), shared }
    }

    async fn apply(
        &self,
        verb: Verb,
        limit: &Limit,
        (policy, span): (&ActivePolicy, &Span),
        amount: u64,
    ) -> Result<Outcome, StoreError> {
        let suffix = format!(":{}", span.name);
        let space = Space::new(&self.prefix, &suffix);
        // Ids and amounts were checked: this is about what nobody should see.
        let odd = |error: &dyn ToString| StoreError::Corrupt(error.to_string());
        let key = Key::new(policy.policy().id.as_str()).map_err(|error| odd(&error))?;
        let cost = Cost::new(amount).map_err(|error| odd(&error))?;
        let check = Check::new(key.within(&space), limit, cost).map_err(|error| odd(&error))?;
        let outcomes = self.store.apply(verb, &Batch::from(check)).await?;
        // An answer that somebody gave in the store's place is none.
        let own = outcomes.first().filter(|outcome| outcome.degraded.is_none());
        own.copied().ok_or(StoreError::BreakerOpen)
    }
}

#[async_trait]
impl QuotaCounter for StoreCounter {
    fn is_shared(&self) -> bool {
        self.shared
    }

    /// Takes what is missing under a limit of `used`: the store admits that only if the counter shows
    /// no more than was assumed, so that nothing is ever counted twice.
    async fn raise(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        standing: Standing,
    ) -> Result<Raised, StoreError> {
        let Standing { used, added } = standing;
        if used == 0 {
            return Ok(Raised::NotNeeded);
        }
        let limit =
            policy.limit_of(used).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let (mut missing, mut raised) = (added.clamp(1, used), Raised::NotNeeded);
        for _ in 0..TRIES {
            let outcome = self.apply(Verb::Acquire, &limit, (policy, span), missing).await?;
            if outcome.allowed {
                raised = Raised::FromLess;
            }
            missing = outcome.remaining;
            if missing == 0 {
                break;
            }
        }
        Ok(raised)
    }

    async fn read(&self, policy: &ActivePolicy, span: &Span) -> Result<Option<u64>, StoreError> {
        let seen = self.apply(Verb::Peek, policy.largest(), (policy, span), 1).await?;
        Ok((!seen.reset_after.is_zero()).then_some(seen.limit - seen.remaining))
    }

    async fn forget(&self, policy: &ActivePolicy, span: &Span) -> Result<(), StoreError> {
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
