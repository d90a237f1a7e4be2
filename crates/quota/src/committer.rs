//! Group commit: operations that wait are committed in one transaction.

mod observer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use futures_util::future::join;
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

pub use self::observer::{Commit, CommitObserver};
use crate::{
    ActivePolicy, Operation, OperationResult, PeriodSpan, Posted, Quotas, RepositoryError,
    counter_updater::{Committed, CounterUpdater},
};

/// Commits waiting operations together. The next batch gathers while a transaction is in flight, so
/// that no operation waits for a timer; counters are raised while the next transaction is in
/// flight.
pub struct Committer {
    queue: mpsc::Receiver<Pending>,
    quotas: Quotas,
    tally: Arc<Tally>,
    observer: Option<Arc<dyn CommitObserver>>,
}

/// Counts of transactions and operations.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: AtomicU64,
    operations: AtomicU64,
    failures: AtomicU64,
}

/// The queue of operations.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Pending>,
    tally: Arc<Tally>,
}

/// An error of a commit.
#[derive(Clone, Debug)]
pub(crate) enum NotCommitted {
    /// The queue is full.
    Full,
    /// The ledger failed.
    Failed(RepositoryError),
}

/// The committer has ended.
#[derive(Clone, Copy, Debug, Error)]
#[error("the server is stopping")]
struct Stopping;

#[derive(Debug)]
struct Pending {
    policy: Arc<ActivePolicy>,
    operation: Operation,
    answer: oneshot::Sender<Result<OperationResult, RepositoryError>>,
}

// === impl Committer ===

impl Committer {
    /// Maximum number of operations per transaction.
    pub const MAX_BATCH: usize = 512;

    /// Creates a queue of at most `capacity` operations, and the task that commits them.
    pub(crate) fn new(quotas: &Quotas, capacity: usize) -> (Queue, Self) {
        let (sender, queue) = mpsc::channel(capacity.max(1));
        let tally = Arc::<Tally>::default();
        let committer =
            Self { queue, quotas: quotas.clone(), tally: Arc::clone(&tally), observer: None };
        (Queue { sender, tally }, committer)
    }

    /// Sets an observer of all transactions.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn CommitObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Runs until all senders are gone and the queue is empty.
    pub async fn run(self) {
        let (sender, committed) = mpsc::channel(CounterUpdater::CAPACITY);
        let updater = CounterUpdater::new(self.quotas.clone(), committed);
        join(self.commit_all(sender), updater.run()).await;
    }

    async fn commit_all(mut self, committed: mpsc::Sender<Committed>) {
        let mut batch = Vec::with_capacity(Self::MAX_BATCH);
        while self.queue.recv_many(&mut batch, Self::MAX_BATCH).await > 0 {
            // Do not charge callers that have gone away. What was used already is charged all the same.
            batch.retain(|pending| !pending.operation.is_request() || !pending.answer.is_closed());
            if !batch.is_empty() {
                self.commit(&mut batch, &committed).await;
            }
        }
    }

    async fn commit(&mut self, batch: &mut Vec<Pending>, committed: &mpsc::Sender<Committed>) {
        let (operations, callers): (Vec<_>, Vec<_>) = batch
            .drain(..)
            .map(|pending| (pending.operation, (pending.policy, pending.answer)))
            .unzip();
        let started = Instant::now();
        let posted = self.quotas.ledger.commit(&operations).await;
        if let Some(observer) = &self.observer {
            let (posted, elapsed) = (posted.as_deref().ok(), started.elapsed());
            observer.committed(&Commit { operations: &operations, posted, elapsed });
        }
        match posted {
            Ok(posted) => {
                self.tally.transactions.fetch_add(1, Relaxed);
                self.tally.operations.fetch_add(posted.len() as u64, Relaxed);
                let decided = operations.iter().zip(posted);
                for ((policy, answer), (operation, posted)) in callers.into_iter().zip(decided) {
                    let span = self.counted_span(&policy, operation);
                    self.record(operation, span.as_deref(), &posted);
                    let Posted { result, effect, .. } = posted;
                    let one = Committed { policy, span, effect, result, answer };
                    // The receiver outlives this task.
                    let _ = committed.send(one).await;
                }
            }
            Err(error) => {
                self.tally.failures.fetch_add(1, Relaxed);
                for (_, answer) in callers {
                    let _ = answer.send(Err(error.clone()));
                }
                self.fail_waiting(&error);
            }
        }
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

    /// Fails all queued operations, which would otherwise wait for the same error batch by batch.
    fn fail_waiting(&mut self, error: &RepositoryError) {
        let cause = match error {
            // Theirs were not sent to the ledger.
            RepositoryError::Unconfirmed(cause) => RepositoryError::Unavailable(Arc::clone(cause)),
            other => other.clone(),
        };
        while let Ok(pending) = self.queue.try_recv() {
            let _ = pending.answer.send(Err(cause.clone()));
        }
    }

    /// Records the usage of a policy, in the order of the batch, so that the last result remains.
    fn record(&self, operation: &Operation, span: Option<&PeriodSpan>, posted: &Posted) {
        if let (Some(span), Some(effect)) = (span, &posted.effect) {
            self.quotas.recent.record(operation.policy(), span, effect, self.quotas.now());
        }
    }
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer").field("waiting", &self.queue.len()).finish_non_exhaustive()
    }
}

// === impl Tally ===

impl Tally {
    /// Returns the number of committed transactions.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Relaxed)
    }

    /// Returns the number of operations in them, done or not.
    pub fn operations(&self) -> u64 {
        self.operations.load(Relaxed)
    }

    /// Returns the number of failed transactions.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

// === impl Queue ===

impl Queue {
    /// Waits until `operation` is committed and the counter shows it.
    pub(crate) async fn commit(
        &self,
        policy: Arc<ActivePolicy>,
        operation: impl Into<Operation>,
    ) -> Result<OperationResult, NotCommitted> {
        let (answer, answered) = oneshot::channel();
        let pending = Pending { policy, operation: operation.into(), answer };
        self.sender.try_send(pending).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotCommitted::Full,
            mpsc::error::TrySendError::Closed(_) => {
                NotCommitted::Failed(RepositoryError::unavailable(Stopping))
            }
        })?;
        // The committer ended with the operation, which may have been committed.
        let lost = |_| NotCommitted::Failed(RepositoryError::unconfirmed(Stopping));
        answered.await.map_err(lost)?.map_err(NotCommitted::Failed)
    }

    /// Returns the number of waiting operations.
    pub(crate) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Returns the counts of transactions and operations.
    pub(crate) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}
