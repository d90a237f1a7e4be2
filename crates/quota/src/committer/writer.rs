//! One transaction of the group commit.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use tokio::{sync::mpsc, time::Instant};

use super::{Commit, CommitObserver, Tally, pending::Pending};
use crate::{
    ActivePolicy, Operation, Patience, PeriodSpan, Posted, Quotas, RepositoryError,
    counter_updater::Committed,
};

/// Commits operations in one transaction, and passes their results on.
#[derive(Clone)]
pub(super) struct Writer {
    pub(super) quotas: Quotas,
    pub(super) tally: Arc<Tally>,
    pub(super) observer: Option<Arc<dyn CommitObserver>>,
    pub(super) committed: mpsc::Sender<Committed>,
}

// === impl Writer ===

impl Writer {
    /// Commits a batch and returns its operations. If that fails, returns the batch with the error,
    /// and no caller has an answer yet.
    pub(super) async fn commit(
        &self,
        batch: Vec<Pending>,
        patience: Patience,
    ) -> Result<Vec<Operation>, (Vec<Pending>, RepositoryError)> {
        let (operations, callers): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|pending| (pending.operation, (pending.policy, pending.answer)))
            .unzip();
        let started = Instant::now();
        let posted = self.quotas.ledger.commit(&operations, patience).await;
        if let Some(observer) = &self.observer {
            let (posted, elapsed) = (posted.as_deref().ok(), started.elapsed());
            observer.committed(&Commit { operations: &operations, posted, elapsed });
        }
        let posted = match posted {
            Ok(posted) => posted,
            Err(error) => {
                self.tally.failures.fetch_add(1, Relaxed);
                let batch = operations.into_iter().zip(callers);
                let batch = batch.map(|(operation, (policy, answer))| Pending {
                    policy,
                    operation,
                    answer,
                });
                return Err((batch.collect(), error));
            }
        };
        self.tally.transactions.fetch_add(1, Relaxed);
        self.tally.operations.fetch_add(posted.len() as u64, Relaxed);
        let decided = operations.iter().zip(posted);
        for ((policy, answer), (operation, posted)) in callers.into_iter().zip(decided) {
            let span = self.counted_span(&policy, operation);
            self.record(operation, span.as_deref(), &posted);
            let Posted { result, effect, .. } = posted;
            let one = Committed { policy, span, effect, result, answer };
            // The receiver outlives this task.
            let _ = self.committed.send(one).await;
        }
        Ok(operations)
    }

    /// Returns the period whose counter shows the usage; `None` for a reservation of a past period,
    /// which has no counter any more.
    fn counted_span(
        &self,
        policy: &ActivePolicy,
        operation: &Operation,
    ) -> Option<Arc<PeriodSpan>> {
        if let Some(span) = operation.span() {
            return Some(Arc::clone(span));
        }
        Some(policy.span(self.quotas.now())).filter(|span| span.name == operation.period_name())
    }

    /// Records the usage of a policy, in the order of the batch, so that the last result remains.
    fn record(&self, operation: &Operation, span: Option<&PeriodSpan>, posted: &Posted) {
        if let (Some(span), Some(effect)) = (span, &posted.effect) {
            self.quotas.recent.record(operation.policy(), span, effect, self.quotas.now());
        }
    }
}
