//! How much of a quota is used.

use headgate_admin::{FieldError, Listed, Page};
use thiserror::Error;

use super::increment::check_amount;
use crate::{
    ActivePolicy, PeriodUsage, QuotaDomainService, QuotaId, QuotaUsage, Quotas, RepositoryError,
    Span,
};

/// Shows usage, and uses nothing.
#[derive(Clone, Debug)]
pub struct ReadUsage(Quotas);

/// Whether an amount would be admitted now.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Whether it would.
    pub allowed: bool,
    /// How much is used.
    pub usage: QuotaUsage,
}

/// Why there is nothing to show.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// What was asked for makes no sense.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// There is no such policy, or nobody knows.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ReadUsage {
    /// Shows the usage of `quotas`.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// How much of a policy is used in the period that it is now.
    pub async fn usage(&self, id: &QuotaId) -> Result<QuotaUsage, RepositoryError> {
        let now = self.0.now();
        let policy = self.0.find(id).await?;
        let span = policy.span(now);
        let used = self.used(&policy, &span, 1).await?;
        let limit = policy.policy().spec.limit;
        Ok(QuotaUsage::new(policy.policy(), Span::clone(&span), (used, limit), now))
    }

    /// Whether `amount`, or 1, would be admitted now.
    pub async fn check(&self, id: &QuotaId, amount: Option<u64>) -> Result<Checked, ReadError> {
        let amount = amount.unwrap_or(1);
        let policy = self.0.find(id).await?;
        check_amount(&policy, amount).map_err(|error| ReadError::Invalid(vec![error]))?;
        let now = self.0.now();
        let span = policy.span(now);
        let used = self.used(&policy, &span, amount).await?;
        let limit = policy.policy().spec.limit;
        let usage = QuotaUsage::new(policy.policy(), Span::clone(&span), (used, limit), now);
        let fits = QuotaDomainService::admits(usage.used, amount, usage.limit);
        Ok(Checked { allowed: fits || !policy.policy().spec.enabled, usage })
    }

    /// One page of the periods in which a policy was used, the newest first.
    pub async fn history(
        &self,
        id: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError> {
        self.0.find(id).await?;
        self.0.ledger.history(id, page).await
    }

    /// What the counter shows, where everybody sees the same one, it shows at least what the
    /// ledger said, and `amount` more would fit; else what the ledger says. A counter may have kept
    /// what nobody got: it shall not tell anybody that nothing is left.
    async fn used(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        amount: u64,
    ) -> Result<u64, RepositoryError> {
        let counter = &self.0.counter;
        let shown = if counter.is_shared() { counter.read(policy, span).await } else { Ok(None) };
        let (id, limit) = (&policy.policy().id, policy.policy().spec.limit);
        let known = self.0.known.used(id, span).unwrap_or_default();
        if let Ok(Some(used)) = shown
            && used >= known
            && (used == known || QuotaDomainService::admits(used, amount, limit))
        {
            return Ok(used);
        }
        let kept = match (self.0.ledger.usage(id, &span.name).await, &shown) {
            (Ok(usage), _) => usage.map_or(0, |usage| usage.used),
            (Err(_), Ok(Some(used))) => return Ok(*used),
            (Err(error), _) => return Err(error),
        };
        self.0.known.forget(id);
        // Whoever asks next need not ask the ledger.
        let _ = match shown {
            Ok(Some(used)) if used != kept => counter.set(policy, span, kept).await,
            Ok(None) if counter.is_shared() && kept > 0 => counter.set(policy, span, kept).await,
            _ => Ok(()),
        };
        Ok(kept)
    }
}
