//! Operations that wait for their commit.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::{ActivePolicy, Operation, OperationResult, QuotaId, RepositoryError};

/// An operation, and the caller that waits for its result.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) policy: Arc<ActivePolicy>,
    pub(super) operation: Operation,
    pub(super) answer: oneshot::Sender<Result<OperationResult, RepositoryError>>,
}

// === impl Pending ===

impl Pending {
    /// Returns `false` if the caller has gone away and must not be charged. What was used already
    /// is charged all the same.
    pub(super) fn is_wanted(&self) -> bool {
        !self.operation.is_request() || !self.answer.is_closed()
    }

    /// Answers with an error.
    pub(super) fn fail(self, error: &RepositoryError) {
        let _ = self.answer.send(Err(error.clone()));
    }

    pub(super) fn id(&self) -> &QuotaId {
        self.operation.policy()
    }
}

/// Splits a batch into two with different policies. The operations of each policy stay together and
/// in order. `Err` if there is one policy only.
pub(super) fn halves(mut batch: Vec<Pending>) -> Result<[Vec<Pending>; 2], Vec<Pending>> {
    // The sort is stable.
    batch.sort_by(|one, other| one.id().cmp(other.id()));
    let is_border = |place: &usize| batch[*place].id() != batch[*place - 1].id();
    let middle = (batch.len() / 2).max(1);
    let border = (middle..batch.len()).find(is_border);
    let Some(border) = border.or_else(|| (1..middle).rev().find(is_border)) else {
        return Err(batch);
    };
    let second = batch.split_off(border);
    Ok([batch, second])
}
