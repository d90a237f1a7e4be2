//! Resets usage.

use headgate::Timestamp;
use headgate_admin::{Author, FieldError};
use thiserror::Error;

use crate::{QuotaId, Quotas, RepositoryError, Reset};

/// Resets usage and records it in the audit log.
#[derive(Clone, Debug)]
pub struct ResetUsage(Quotas);

/// The result of a reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetDone {
    /// Id of the policy.
    pub quota_id: QuotaId,
    /// Usage before.
    pub before: u64,
    /// Time of the reset.
    pub reset_at: Timestamp,
    /// Caller.
    pub reset_by: String,
}

/// An error of a reset.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The reason is missing or too long.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// The policy does not exist, or the ledger failed.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ResetUsage {
    /// Maximum length of a reason in characters.
    pub const MAX_REASON: usize = 1_000;

    /// Creates the use case.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// Sets the usage of the current period to 0. Events of the period are not recorded again, and
    /// request ids are not charged again.
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
            // The attempt has measured the ledger's clock: retry with the period by that.
            Err(RepositoryError::OutOfPeriod(_)) => {
                reset.span = policy.span(self.0.now());
                self.0.ledger.reset(&reset).await?
            }
            before => before?,
        };
        self.0.recent.remove(&id);
        // On failure, the counter shows too much until it is compared with the ledger.
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
