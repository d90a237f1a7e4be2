//! Gives a subject its whole quota back.

use headgate::Timestamp;
use headgate_admin::{Author, FieldError};
use thiserror::Error;

use crate::{QuotaId, Quotas, RepositoryError, Reset};

/// Sets usage to nothing, and writes down who wanted that and why.
#[derive(Clone, Debug)]
pub struct ResetUsage(Quotas);

/// What was reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetDone {
    /// Which policy.
    pub quota_id: QuotaId,
    /// How much was used before.
    pub before: u64,
    /// When it was reset.
    pub reset_at: Timestamp,
    /// By whom.
    pub reset_by: String,
}

/// Why nothing was reset.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// There is no good reason.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// There is no such policy, or the ledger cannot.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ResetUsage {
    /// The longest reason, in characters.
    pub const MAX_REASON: usize = 1_000;

    /// Resets the usage of `quotas`.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// Sets usage in the period that it is now to 0. Events of the period are not told again, and
    /// request ids that were charged are not charged again.
    pub async fn reset(
        &self,
        id: &QuotaId,
        reason: &str,
        author: Author,
    ) -> Result<ResetDone, ResetError> {
        validate(reason).map_err(|error| ResetError::Invalid(vec![error]))?;
        let policy = self.0.find(id).await?;
        let (reset_at, reset_by) = (author.at, author.actor.clone());
        let (id, reason) = (id.clone(), reason.trim().to_owned());
        let mut reset =
            Reset { policy: id.clone(), span: policy.span(self.0.now()), reason, author };
        let before = match self.0.ledger.reset(&reset).await {
            // The ledger's clock has been measured by that.
            Err(RepositoryError::OutOfPeriod(_)) => {
                reset.span = policy.span(self.0.now());
                self.0.ledger.reset(&reset).await?
            }
            before => before?,
        };
        self.0.known.forget(&id);
        // A counter that stays shows too much, until the ledger is asked.
        let _ = self.0.counter.forget(&policy, &reset.span).await;
        Ok(ResetDone { quota_id: id, before, reset_at, reset_by })
    }
}

fn validate(reason: &str) -> Result<(), FieldError> {
    let max = ResetUsage::MAX_REASON;
    let (why, message) = match reason.trim().chars().count() {
        0 => ("required", "reason is required".to_owned()),
        length if length > max => ("length", format!("reason must have at most {max} characters")),
        _ => return Ok(()),
    };
    Err(FieldError { field: "reason", reason: why, message })
}
