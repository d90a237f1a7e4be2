//! Many waiting increments, one transaction.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use futures_util::future::join;
use headgate::Timestamp;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use crate::{
    ActivePolicy, Entry, Increment, Quotas, RepositoryError, Verdict,
    mirror::{Committed, Mirror},
};

/// Takes increments that wait and commits them together. While one transaction is under way the
/// next ones gather, so that nobody waits for a timer; and while counters are raised to what one has
/// committed, the next is under way.
pub struct Committer {
    queue: mpsc::Receiver<Waiting>,
    quotas: Quotas,
    tally: Arc<Tally>,
}

/// How much was committed.
#[derive(Debug, Default)]
pub struct Tally {
    transactions: AtomicU64,
    increments: AtomicU64,
    failures: AtomicU64,
}

/// Where increments wait.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: mpsc::Sender<Waiting>,
    tally: Arc<Tally>,
}

/// Why an increment was not committed.
#[derive(Clone, Debug)]
pub(crate) enum NotCommitted {
    /// Too many wait already.
    Full,
    /// The ledger could not.
    Failed(RepositoryError),
}

/// Nobody commits any more.
#[derive(Clone, Copy, Debug, Error)]
#[error("the server is stopping")]
struct Stopping;

#[derive(Debug)]
struct Waiting {
    policy: Arc<ActivePolicy>,
    increment: Increment,
    answer: oneshot::Sender<Result<Entry, RepositoryError>>,
}

// === impl Committer ===

impl Committer {
    /// The most increments in one transaction.
    pub const MAX_BATCH: usize = 512;

    /// Commits to the ledger of `quotas` what waits in the queue, which holds at most `capacity`.
    pub(crate) fn new(quotas: &Quotas, capacity: usize) -> (Queue, Self) {
        let (sender, queue) = mpsc::channel(capacity.max(1));
        let tally = Arc::<Tally>::default();
        let committer = Self { queue, quotas: quotas.clone(), tally: Arc::clone(&tally) };
        (Queue { sender, tally }, committer)
    }

    /// Goes on until nobody can send increments any more and none waits.
    pub async fn run(self) {
        let (sender, committed) = mpsc::channel(Mirror::CAPACITY);
        let mirror = Mirror::new(self.quotas.clone(), committed);
        join(self.commit_all(sender), mirror.run()).await;
    }

    async fn commit_all(mut self, committed: mpsc::Sender<Committed>) {
        let mut batch = Vec::with_capacity(Self::MAX_BATCH);
        while self.queue.recv_many(&mut batch, Self::MAX_BATCH).await > 0 {
            // Whoever went away was not answered: it is not charged either.
            batch.retain(|waiting| !waiting.answer.is_closed());
            if !batch.is_empty() {
                self.commit(&mut batch, &committed).await;
            }
        }
    }

    async fn commit(&mut self, batch: &mut Vec<Waiting>, committed: &mpsc::Sender<Committed>) {
        let (increments, callers): (Vec<_>, Vec<_>) = batch
            .drain(..)
            .map(|waiting| (waiting.increment, (waiting.policy, waiting.answer)))
            .unzip();
        match self.quotas.ledger.commit(&increments).await {
            Ok(entries) => {
                self.tally.transactions.fetch_add(1, Relaxed);
                self.tally.increments.fetch_add(entries.len() as u64, Relaxed);
                self.hear(&increments, &entries);
                let decided = increments.into_iter().zip(entries);
                for ((policy, answer), (increment, entry)) in callers.into_iter().zip(decided) {
                    let Increment { span, amount, .. } = increment;
                    let one = Committed { policy, span, amount, entry, answer };
                    // The mirror outlives this.
                    let _ = committed.send(one).await;
                }
            }
            Err(error) => {
                self.tally.failures.fetch_add(1, Relaxed);
                for (_, answer) in callers {
                    let _ = answer.send(Err(error.clone()));
                }
                self.turn_away(&error);
            }
        }
    }

    /// Those who came while the ledger was failing would only wait for the same, one batch after another.
    fn turn_away(&mut self, error: &RepositoryError) {
        let cause = match error {
            // Theirs was not even tried.
            RepositoryError::Unconfirmed(cause) => RepositoryError::Unavailable(Arc::clone(cause)),
            other => other.clone(),
        };
        while let Ok(waiting) = self.queue.try_recv() {
            let _ = waiting.answer.send(Err(cause.clone()));
        }
    }

    /// Notes how each policy stands after the batch: in its order, so that the last word counts.
    fn hear(&self, increments: &[Increment], entries: &[Entry]) {
        let at: Timestamp = self.quotas.now();
        for (increment, entry) in increments.iter().zip(entries) {
            if matches!(entry.verdict, Verdict::Taken | Verdict::Refused) {
                self.quotas.known.hear(&increment.policy, &increment.span, *entry, at);
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
    /// How many transactions were committed.
    pub fn transactions(&self) -> u64 {
        self.transactions.load(Relaxed)
    }

    /// How many increments were in them, whatever became of those.
    pub fn increments(&self) -> u64 {
        self.increments.load(Relaxed)
    }

    /// How many transactions failed.
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

// === impl Queue ===

impl Queue {
    /// Waits until `increment` is committed, and the counter shows it.
    pub(crate) async fn commit(
        &self,
        policy: Arc<ActivePolicy>,
        increment: Increment,
    ) -> Result<Entry, NotCommitted> {
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { policy, increment, answer };
        self.sender.try_send(waiting).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotCommitted::Full,
            mpsc::error::TrySendError::Closed(_) => {
                NotCommitted::Failed(RepositoryError::unavailable(Stopping))
            }
        })?;
        // It went away with the increment: perhaps after it was done.
        let lost = |_| NotCommitted::Failed(RepositoryError::unconfirmed(Stopping));
        answered.await.map_err(lost)?.map_err(NotCommitted::Failed)
    }

    /// How many increments wait.
    pub(crate) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    /// How much was committed.
    pub(crate) const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }
}
