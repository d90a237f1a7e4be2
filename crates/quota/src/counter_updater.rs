//! Raises counters after commits, then answers the callers.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::{
    ActivePolicy, IncrementOutcome, IncrementResult, PeriodSpan, QuotaId, Quotas, RepositoryError,
    counter::{CommittedUsage, RaiseOutcome},
};

/// Raises counters to the committed usage, then answers the callers: unless the store is
/// unavailable, a counter includes an increment before its caller gets the response.
pub(crate) struct CounterUpdater {
    quotas: Quotas,
    committed: mpsc::Receiver<Committed>,
}

/// An increment that the ledger has decided, and the caller that waits for it.
pub(crate) struct Committed {
    pub(crate) policy: Arc<ActivePolicy>,
    pub(crate) span: Arc<PeriodSpan>,
    pub(crate) amount: u64,
    pub(crate) result: IncrementResult,
    pub(crate) answer: oneshot::Sender<Result<IncrementResult, RepositoryError>>,
}

/// A counter to raise.
struct StaleCounter {
    policy: Arc<ActivePolicy>,
    span: Arc<PeriodSpan>,
    usage: CommittedUsage,
}

/// Maximum number of counters that are raised concurrently.
const MAX_CONCURRENT: usize = 64;

// === impl CounterUpdater ===

impl CounterUpdater {
    /// Maximum number of committed increments whose counters are not raised yet.
    pub(crate) const CAPACITY: usize = 2_048;

    pub(crate) const fn new(quotas: Quotas, committed: mpsc::Receiver<Committed>) -> Self {
        Self { quotas, committed }
    }

    /// Runs until the committer ends.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.committed.recv_many(&mut batch, Self::CAPACITY).await > 0 {
            let stale = stream::iter(StaleCounter::of(&batch));
            stale.for_each_concurrent(MAX_CONCURRENT, |stale| stale.raise(&self.quotas)).await;
            for Committed { answer, result, .. } in batch.drain(..) {
                let _ = answer.send(Ok(result));
            }
        }
    }
}

// === impl StaleCounter ===

impl StaleCounter {
    /// Returns the counters of a batch, each with its last usage.
    fn of(batch: &[Committed]) -> Vec<Self> {
        let mut all: HashMap<(&QuotaId, &str), Self> = HashMap::new();
        for one in batch {
            let added = match one.result.outcome {
                IncrementOutcome::Charged => one.amount,
                IncrementOutcome::Denied => 0,
                _ => continue,
            };
            let key = (&one.policy.policy().id, &*one.span.name);
            let stale = all.entry(key).or_insert_with(|| Self {
                policy: Arc::clone(&one.policy),
                span: Arc::clone(&one.span),
                usage: CommittedUsage { used: 0, added: 0 },
            });
            stale.usage.used = one.result.used;
            stale.usage.added += added;
        }
        all.into_values().collect()
    }

    /// Raises the counter. If the store is unavailable, the counter stays too low until the next
    /// commit, check or reconciliation.
    async fn raise(self, quotas: &Quotas) {
        let Self { policy, span, usage } = self;
        let raised = quotas.counter.raise(&policy, &span, usage).await;
        // Another process raised it first; or usage was reset, and a late raise undid that.
        if usage.added > 0 && matches!(raised, Ok(RaiseOutcome::Unchanged)) {
            quotas.verify_counter(&policy, &span).await;
        }
    }
}
