//! How much of a quota is used.

use headgate::StoreError;
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

    /// How much of a policy is used in the period that it is now: exactly what was charged, as the
    /// ledger says. A shared counter answers while the ledger is away.
    pub async fn usage(&self, id: &QuotaId) -> Result<QuotaUsage, RepositoryError> {
        let policy = self.0.find(id).await?;
        let now = self.0.now();
        let span = policy.span(now);
        let used = match self.0.kept(id, &span).await {
            Ok(used) => used,
            Err(error) => match self.shown(&policy, &span).await {
                Ok(Some(used)) => used,
                _ => return Err(error),
            },
        };
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
    /// ledger said, and `amount` more would fit; else what the ledger says. A counter may be older than
    /// a reset: it shall not tell anybody that nothing is left.
    async fn used(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        amount: u64,
    ) -> Result<u64, RepositoryError> {
        let shown = self.shown(policy, span).await;
        let (id, limit) = (&policy.policy().id, policy.policy().spec.limit);
        let known = self.0.known.used(id, span).unwrap_or_default();
        if let Ok(Some(used)) = shown
            && used >= known
            && (used == known || QuotaDomainService::admits(used, amount, limit))
        {
            return Ok(used);
        }
        let kept = match (self.0.kept(id, span).await, &shown) {
            (Ok(kept), _) => kept,
            (Err(_), Ok(Some(used))) => return Ok(*used),
            (Err(error), _) => return Err(error),
        };
        self.0.known.forget(id);
        // The next check need not ask the ledger.
        if let Ok(shown) = shown
            && self.0.counter.is_shared()
        {
            let _ = self.0.put_right(policy, span, shown, kept).await;
        }
        Ok(kept)
    }

    /// What the counter shows, if it is everybody's.
    async fn shown(&self, policy: &ActivePolicy, span: &Span) -> Result<Option<u64>, StoreError> {
        let counter = &self.0.counter;
        if counter.is_shared() { counter.read(policy, span).await } else { Ok(None) }
    }
}
