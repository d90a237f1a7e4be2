//! Group commit: operations that wait are committed in one transaction.

mod lane;
mod observer;
mod pending;
mod suspects;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use futures_util::future::join3;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

pub use self::observer::{Commit, CommitObserver};
use self::{lane::Lane, pending::Pending, suspects::Suspects, writer::Writer};
use crate::{
    ActivePolicy, Operation, OperationResult, Quotas, RepositoryError,
    counter_updater::CounterUpdater,
};

/// Commits waiting operations together. The next batch gathers while a transaction is in flight, so
/// that no operation waits for a timer; counters are raised while the next transaction is in
/// flight.
///
/// A policy that cannot be committed, because its row is locked, corrupt or refused, does not fail
/// the others of its transaction, and does not delay the next ones: it is committed apart from them
/// until that succeeds.
pub struct Committer {
    queue: mpsc::Receiver<Pending>,
    aside: mpsc::Sender<Pending>,
    set_aside: mpsc::Receiver<Pending>,
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
    /// Weak, because the committer ends when all senders are gone.
    aside: mpsc::WeakSender<Pending>,
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

// === impl Committer ===

impl Committer {
    /// Maximum number of operations per transaction.
    pub const MAX_BATCH: usize = 512;

    /// Maximum number of operations that wait because their policies cannot be committed.
    const MAX_ASIDE: usize = 1_024;

    /// Creates a queue of at most `capacity` operations, and the task that commits them.
    pub(crate) fn new(quotas: &Quotas, capacity: usize) -> (Queue, Self) {
        let (sender, queue) = mpsc::channel(capacity.max(1));
        let (aside, set_aside) = mpsc::channel(Self::MAX_ASIDE);
        let tally = Arc::<Tally>::default();
        let sending = Queue { sender, aside: aside.downgrade(), tally: Arc::clone(&tally) };
        let quotas = quotas.clone();
        (sending, Self { queue, aside, set_aside, quotas, tally, observer: None })
    }

    /// Sets an observer of all transactions.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn CommitObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Runs until all senders are gone and the queue is empty.
    pub async fn run(self) {
        let Self { queue, aside, set_aside, quotas, tally, observer } = self;
        let (sender, committed) = mpsc::channel(CounterUpdater::CAPACITY);
        let updater = CounterUpdater::new(quotas.clone(), committed);
        let writer = Writer { quotas, tally, observer, committed: sender };
        let suspects = Arc::<Suspects>::default();
        let side = Lane::aside(set_aside, writer.clone(), Arc::clone(&suspects));
        let main = Lane::main(queue, aside, writer, suspects);
        join3(main.run(), side.run(), updater.run()).await;
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

    /// Returns the number of failed transactions, those that were split and repeated included.
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
        let waiting = |queue: &mpsc::Sender<Pending>| queue.max_capacity() - queue.capacity();
        waiting(&self.sender) + self.aside.upgrade().as_ref().map_or(0, waiting)
    }

    /// Returns the counts of transactions and operations.
    pub(crate) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}
