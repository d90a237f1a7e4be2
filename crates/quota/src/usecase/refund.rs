//! Gives back what an increment charged.

use std::sync::Arc;

use headgate_admin::FieldError;
use thiserror::Error;

use super::increment::{IncrementUsage, check_request_id};
use crate::{
    ActivePolicy, PeriodSpan, QuotaId, QuotaUsage, Quotas, Refund, RefundOutcome, RepositoryError,
    committer::{NotCommitted, Queue},
};

/// Gives back what an increment of the current period charged, once.
#[derive(Clone, Debug)]
pub struct RefundUsage {
    quotas: Quotas,
    queue: Queue,
}

/// The result of a refund.
#[derive(Clone, Debug, PartialEq)]
pub struct RefundDone {
    /// Units that came back: those of the increment, or 0 if a reset gave them back before.
    pub refunded: u64,
    /// `true` if they came back before.
    pub replayed: bool,
    /// Usage after it.
    pub usage: QuotaUsage,
}

/// An error of a refund.
#[derive(Clone, Debug, Error)]
pub enum RefundError {
    /// The request id is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// Nothing was charged under this request id.
    #[error("nothing was charged under request_id {0}")]
    Unknown(String),
    /// The increment was charged in a period that is over.
    #[error("request_id {request_id} was charged in {period_name}, which is over")]
    PeriodOver {
        /// Idempotency key of the increment.
        request_id: String,
        /// Name of the period.
        period_name: String,
    },
    /// The queue is full.
    #[error("too many operations are waiting; try again")]
    Overloaded,
    /// The policy does not exist, or the ledger failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

// === impl RefundUsage ===

impl RefundUsage {
    /// Creates the use case on the queue of `increments`.
    pub fn new(increments: &IncrementUsage) -> Self {
        let (quotas, queue) = increments.parts();
        Self { quotas: quotas.clone(), queue: queue.clone() }
    }

    /// Gives back what was charged under `request_id` in the current period. A repeat gives back
    /// nothing more.
    pub async fn refund(&self, id: &QuotaId, request_id: &str) -> Result<RefundDone, RefundError> {
        if let Some(error) = check_request_id(request_id) {
            return Err(RefundError::Invalid(vec![error]));
        }
        let policy = self.quotas.find(id).await?;
        let first = self.attempt(&policy, request_id).await;
        // The commit has measured the ledger's clock: retry with the period by that.
        if let Err(RefundError::Repository(RepositoryError::OutOfPeriod(_))) = first {
            return self.attempt(&policy, request_id).await;
        }
        first
    }

    async fn attempt(
        &self,
        policy: &Arc<ActivePolicy>,
        request_id: &str,
    ) -> Result<RefundDone, RefundError> {
        let (now, id) = (self.quotas.now(), &policy.policy().id);
        let span = policy.span(now);
        let refund = Refund {
            policy: id.clone(),
            span: Arc::clone(&span),
            request_id: request_id.to_owned(),
            at: now,
        };
        let result = self.queue.commit(Arc::clone(policy), refund).await?.refund();
        let result = result.ok_or_else(|| RepositoryError::mismatched("a refund"))?;
        match result.outcome {
            RefundOutcome::Refunded | RefundOutcome::Replayed => {
                let span = PeriodSpan::clone(&span);
                let usage = QuotaUsage::new(policy.policy(), span, result.units, now);
                let replayed = result.outcome == RefundOutcome::Replayed;
                Ok(RefundDone { refunded: result.refunded, replayed, usage })
            }
            RefundOutcome::Unknown => Err(self.unknown(id, request_id).await?),
            RefundOutcome::OutOfPeriod => {
                Err(RepositoryError::OutOfPeriod(span.name.clone()).into())
            }
            RefundOutcome::NotFound => Err(RepositoryError::NotFound(id.clone()).into()),
        }
    }

    /// Distinguishes a request id of an earlier period from one that was never charged.
    async fn unknown(
        &self,
        id: &QuotaId,
        request_id: &str,
    ) -> Result<RefundError, RepositoryError> {
        let request_id = request_id.to_owned();
        Ok(match self.quotas.ledger.charged_period(id, &request_id).await? {
            Some(period_name) => RefundError::PeriodOver { request_id, period_name },
            None => RefundError::Unknown(request_id),
        })
    }
}

// === impl RefundError ===

impl From<NotCommitted> for RefundError {
    fn from(error: NotCommitted) -> Self {
        match error {
            NotCommitted::Full => Self::Overloaded,
            NotCommitted::Failed(error) => Self::Repository(error),
        }
    }
}
