//! Commits a queue batch by batch, and keeps apart what cannot be committed.

use std::{collections::HashSet, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{sync::mpsc, time::Instant};

use super::{
    Committer,
    pending::{Pending, halves},
    suspects::Suspects,
    writer::Writer,
};
use crate::{Patience, QuotaId, RepositoryError};

/// A queue of operations and the task that commits them.
///
/// The main lane has the operations on all policies except suspects, which it passes on to the
/// other lane: there they wait for locks only among themselves. The lanes are to each other as two
/// servers are; within a lane, the operations of a policy stay in order.
pub(super) struct Lane {
    queue: mpsc::Receiver<Pending>,
    /// The other lane; `None` if this is it.
    aside: Option<mpsc::Sender<Pending>>,
    writer: Writer,
    suspects: Arc<Suspects>,
}

/// Maximum time for splitting and repeating a batch after its first failure. Operations that are
/// left then fail, because the queue waits.
const MAX_SPLITTING: Duration = Duration::from_secs(10);

/// Too many operations are set aside.
#[derive(Clone, Copy, Debug, Error)]
#[error("too many operations already wait for quotas that cannot be committed")]
struct TooManyAside;

/// Too many policies of a batch cannot be committed.
#[derive(Clone, Copy, Debug, Error)]
#[error("too many quotas that cannot be committed came before this one")]
struct TooManySuspects;

// === impl Lane ===

impl Lane {
    /// Creates the main lane.
    pub(super) const fn main(
        queue: mpsc::Receiver<Pending>,
        aside: mpsc::Sender<Pending>,
        writer: Writer,
        suspects: Arc<Suspects>,
    ) -> Self {
        Self { queue, aside: Some(aside), writer, suspects }
    }

    /// Creates the lane of suspects.
    pub(super) const fn aside(
        queue: mpsc::Receiver<Pending>,
        writer: Writer,
        suspects: Arc<Suspects>,
    ) -> Self {
        Self { queue, aside: None, writer, suspects }
    }

    /// Runs until all senders are gone and the queue is empty.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::new();
        while self.queue.recv_many(&mut batch, Committer::MAX_BATCH).await > 0 {
            if let Some(aside) = &self.aside {
                pass_on(self.suspects.take_from(&mut batch), aside);
            }
            self.commit(std::mem::take(&mut batch)).await;
        }
    }

    async fn commit(&mut self, batch: Vec<Pending>) {
        let (mut parts, mut deadline) = (vec![batch], None);
        while let Some(mut part) = parts.pop() {
            part.retain(Pending::is_wanted);
            if part.is_empty() {
                continue;
            }
            let (part, error) = match self.writer.commit(part, self.patience()).await {
                Ok(committed) => {
                    if self.aside.is_none() {
                        self.suspects.clear(&committed);
                    }
                    continue;
                }
                Err(failed) => failed,
            };
            if !error.is_partial() {
                fail(part, &error);
                self.fail_waiting(parts, &error);
                return;
            }
            parts.extend(self.split(part, &error));
            if *deadline.get_or_insert_with(|| Instant::now() + MAX_SPLITTING) <= Instant::now() {
                fail(parts.into_iter().flatten(), &RepositoryError::busy(TooManySuspects));
                return;
            }
        }
    }

    /// Takes what cannot be committed out of a batch that failed; returns the parts to try again.
    fn split(&self, batch: Vec<Pending>, error: &RepositoryError) -> Vec<Vec<Pending>> {
        let locked: HashSet<&QuotaId> = match error {
            RepositoryError::Busy { policies, .. } => policies.iter().collect(),
            _ => HashSet::new(),
        };
        let (locked, rest): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|pending| locked.contains(pending.id()));
        if !locked.is_empty() {
            self.set_aside(locked, error);
            return vec![rest];
        }
        match halves(rest) {
            Ok(halves) => halves.into(),
            Err(one_policy) => {
                self.set_aside(one_policy, error);
                Vec::new()
            }
        }
    }

    /// Makes the policies of a batch suspects. Their operations wait for a lock in the other lane;
    /// they fail if they have, or if that would not help.
    fn set_aside(&self, batch: Vec<Pending>, error: &RepositoryError) {
        for pending in &batch {
            self.suspects.add(pending.id());
        }
        match &self.aside {
            Some(aside) if matches!(error, RepositoryError::Busy { .. }) => pass_on(batch, aside),
            _ => fail(batch, error),
        }
    }

    /// Fails everything that waits, which would otherwise wait for the same error batch by batch.
    fn fail_waiting(&mut self, parts: Vec<Vec<Pending>>, error: &RepositoryError) {
        let error = match error {
            // Theirs were not sent to the ledger.
            RepositoryError::Unconfirmed(cause) => RepositoryError::Unavailable(Arc::clone(cause)),
            other => other.clone(),
        };
        fail(parts.into_iter().flatten(), &error);
        while let Ok(pending) = self.queue.try_recv() {
            pending.fail(&error);
        }
    }

    const fn patience(&self) -> Patience {
        if self.aside.is_some() { Patience::Short } else { Patience::Long }
    }
}

fn pass_on(batch: Vec<Pending>, aside: &mpsc::Sender<Pending>) {
    for pending in batch {
        if let Err(error) = aside.try_send(pending) {
            error.into_inner().fail(&RepositoryError::busy(TooManyAside));
        }
    }
}

fn fail(batch: impl IntoIterator<Item = Pending>, error: &RepositoryError) {
    for pending in batch {
        pending.fail(error);
    }
}
