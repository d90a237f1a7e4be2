//! Group commit: increments that wait are committed in one transaction.

mod observer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use futures_util::future::join;
use headgate::Timestamp;
use thiserror::Error;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

pub use self::observer::{Commit, CommitObserver};
use crate::{
    ActivePolicy, Increment, IncrementOutcome, IncrementResult, Quotas, RepositoryError,
    counter_updater::{Committed, CounterUpdater},
};

/// Commits waiting increments together. The next batch gathers while a transaction is in flight, so
/// that no increment waits for a timer; counters are raised while the next transaction is in
/// flight.
pub struct Committer {
    queue: mpsc::Receiver<PendingIncrement>,
    quotas: Quotas,
    tally: Arc<Tally>,
    observer: Option<Arc<dyn CommitObserver>>,
}

/// Counts of transactions and increments.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: AtomicU64,
    increments: AtomicU64,
    failures: AtomicU64,
}

/// The queue of increments.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<PendingIncrement>,
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
struct PendingIncrement {
    policy: Arc<ActivePolicy>,
    increment: Increment,
    answer: oneshot::Sender<Result<IncrementResult, RepositoryError>>,
}

// === impl Committer ===

impl Committer {
    /// Maximum number of increments per transaction.
    pub const MAX_BATCH: usize = 512;

    /// Creates a queue of at most `capacity` increments, and the task that commits them.
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
            // Do not charge callers that have gone away.
            batch.retain(|pending| !pending.answer.is_closed());
            if !batch.is_empty() {
                self.commit(&mut batch, &committed).await;
            }
        }
    }

    async fn commit(
        &mut self,
        batch: &mut Vec<PendingIncrement>,
        committed: &mpsc::Sender<Committed>,
    ) {
        let (increments, callers): (Vec<_>, Vec<_>) = batch
            .drain(..)
            .map(|pending| (pending.increment, (pending.policy, pending.answer)))
            .unzip();
        let started = Instant::now();
        let result = self.quotas.ledger.commit(&increments).await;
        if let Some(observer) = &self.observer {
            let results = result.as_deref().ok();
            observer.committed(&Commit {
                increments: &increments,
                results,
                elapsed: started.elapsed(),
            });
        }
        match result {
            Ok(results) => {
                self.tally.transactions.fetch_add(1, Relaxed);
                self.tally.increments.fetch_add(results.len() as u64, Relaxed);
                self.record(&increments, &results);
                let decided = increments.into_iter().zip(results);
                for ((policy, answer), (increment, result)) in callers.into_iter().zip(decided) {
                    let Increment { span, amount, .. } = increment;
                    let one = Committed { policy, span, amount, result, answer };
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

    /// Fails all queued increments, which would otherwise wait for the same error batch by batch.
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

    /// Records the usage of each policy in the order of the batch, so that the last result remains.
    fn record(&self, increments: &[Increment], results: &[IncrementResult]) {
        let at: Timestamp = self.quotas.now();
        for (increment, result) in increments.iter().zip(results) {
            if matches!(result.outcome, IncrementOutcome::Charged | IncrementOutcome::Denied) {
                self.quotas.recent.record(&increment.policy, &increment.span, *result, at);
            }
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

    /// Returns the number of increments in them, charged or not.
    pub fn increments(&self) -> u64 {
        self.increments.load(Relaxed)
    }

    /// Returns the number of failed transactions.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

// === impl Queue ===

impl Queue {
    /// Waits until `increment` is committed and the counter shows it.
    pub(crate) async fn commit(
        &self,
        policy: Arc<ActivePolicy>,
        increment: Increment,
    ) -> Result<IncrementResult, NotCommitted> {
        let (answer, answered) = oneshot::channel();
        let pending = PendingIncrement { policy, increment, answer };
        self.sender.try_send(pending).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotCommitted::Full,
            mpsc::error::TrySendError::Closed(_) => {
                NotCommitted::Failed(RepositoryError::unavailable(Stopping))
            }
        })?;
        // The committer ended with the increment, which may have been committed.
        let lost = |_| NotCommitted::Failed(RepositoryError::unconfirmed(Stopping));
        answered.await.map_err(lost)?.map_err(NotCommitted::Failed)
    }

    /// Returns the number of waiting increments.
    pub(crate) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// Returns the counts of transactions and increments.
    pub(crate) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}
