//! Raises counters after commits, then answers the callers.

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::{
    ActivePolicy, Effect, OperationResult, PeriodSpan, QuotaId, Quotas, RepositoryError,
    counter::{CommittedUsage, RaiseOutcome},
};

/// Raises counters to the committed usage, then answers the callers: unless the store is
/// unavailable, a counter includes an increment or a reservation before its caller gets the
/// response.
pub(crate) struct CounterUpdater {
    quotas: Quotas,
    committed: mpsc::Receiver<Committed>,
}

/// An operation that the ledger has decided, and the caller that waits for it.
pub(crate) struct Committed {
    pub(crate) policy: Arc<ActivePolicy>,
    /// Period of the counter, if it has one.
    pub(crate) span: Option<Arc<PeriodSpan>>,
    pub(crate) effect: Option<Effect>,
    pub(crate) result: OperationResult,
    pub(crate) answer: oneshot::Sender<Result<OperationResult, RepositoryError>>,
}

/// A counter to raise.
struct StaleCounter {
    policy: Arc<ActivePolicy>,
    span: Arc<PeriodSpan>,
    usage: CommittedUsage,
    /// `true` if reserved units came back.
    lowered: bool,
    /// `true` if used units came back.
    refunded: bool,
}

/// Maximum number of counters that are raised concurrently.
const MAX_CONCURRENT: usize = 64;

// === impl CounterUpdater ===

impl CounterUpdater {
    /// Maximum number of committed operations whose counters are not raised yet.
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
            let (Some(span), Some(effect)) = (&one.span, one.effect) else { continue };
            let key = (&one.policy.policy().id, &*span.name);
            let stale = all.entry(key).or_insert_with(|| Self {
                policy: Arc::clone(&one.policy),
                span: Arc::clone(span),
                usage: CommittedUsage { used: 0, added: 0 },
                lowered: false,
                refunded: false,
            });
            stale.usage.used = effect.units.taken();
            stale.usage.added += effect.added;
            stale.lowered |= effect.lowered;
            stale.refunded |= effect.refunded;
        }
        all.into_values().collect()
    }

    /// Raises the counter. If the store is unavailable, the counter stays too low until the next
    /// commit, check or reconciliation.
    async fn raise(self, quotas: &Quotas) {
        let Self { policy, span, usage, lowered, refunded } = self;
        if refunded {
            // Other processes may deny by the counter without asking the ledger.
            let _ = quotas.counter.forget(&policy, &span).await;
        }
        let raised = quotas.counter.raise(&policy, &span, usage).await;
        // Reserved units came back; or another process raised it first; or usage was reset, and a
        // late raise undid that.
        let unchanged = usage.added > 0 && matches!(raised, Ok(RaiseOutcome::Unchanged));
        if unchanged || lowered {
            quotas.verify_counter(&policy, &span).await;
        }
    }
}
