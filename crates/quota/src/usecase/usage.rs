//! Reads usage.

use headgate::StoreError;
use headgate_admin::{FieldError, Listed, Page};
use thiserror::Error;

use super::increment::check_amount;
use crate::{
    ActivePolicy, PeriodSpan, PeriodUsage, QuotaId, QuotaUsage, Quotas, RepositoryError, Units,
};

/// Reads usage.
#[derive(Clone, Debug)]
pub struct ReadUsage(Quotas);

/// The result of a check.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageCheck {
    /// `true` if the amount would be admitted.
    pub allowed: bool,
    /// Current usage. Reserved units are part of `used`, as in a counter.
    pub usage: QuotaUsage,
}

/// An error of reading usage.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The amount is invalid.
    #[error("validation failed")]
    Invalid(Vec<FieldError>),
    /// The policy does not exist, or neither ledger nor counter is available.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl ReadUsage {
    /// Creates the use case.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// Returns the usage of the current period, as the ledger has it. A shared counter is used
    /// while the ledger is unavailable; it counts reserved units as used.
    pub async fn usage(&self, id: &QuotaId) -> Result<QuotaUsage, RepositoryError> {
        let policy = self.0.find(id).await?;
        let now = self.0.now();
        let span = policy.span(now);
        let (used, reserved) = match self.0.ledger.usage(id, &span.name).await {
            Ok(usage) => usage.map_or((0, 0), |usage| (usage.used, usage.reserved)),
            Err(error) => match self.shown(&policy, &span).await {
                Ok(Some(used)) => (used, 0),
                _ => return Err(error),
            },
        };
        let units = Units { used, reserved, limit: policy.policy().spec.limit };
        Ok(QuotaUsage::new(policy.policy(), PeriodSpan::clone(&span), units, now))
    }

    /// Checks whether `amount`, or 1, would be admitted now.
    pub async fn check(&self, id: &QuotaId, amount: Option<u64>) -> Result<UsageCheck, ReadError> {
        let amount = amount.unwrap_or(1);
        let policy = self.0.find(id).await?;
        check_amount(&policy, amount).map_err(|error| ReadError::Invalid(vec![error]))?;
        let now = self.0.now();
        let span = policy.span(now);
        let used = self.used(&policy, &span, amount).await?;
        let units = Units { used, reserved: 0, limit: policy.policy().spec.limit };
        let usage = QuotaUsage::new(policy.policy(), PeriodSpan::clone(&span), units, now);
        let admitted = QuotaUsage::admits(usage.used, amount, usage.limit);
        Ok(UsageCheck { allowed: admitted || !policy.policy().spec.enabled, usage })
    }

    /// Returns a page of the periods in which a policy was used, newest first.
    pub async fn history(
        &self,
        id: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError> {
        self.0.find(id).await?;
        self.0.ledger.history(id, page).await
    }

    /// Returns the used and reserved units of the counter if it is shared, not behind recent commits,
    /// and admits `amount`; otherwise those of the ledger. A counter may be older than a reset, so that it
    /// alone must not deny.
    async fn used(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        amount: u64,
    ) -> Result<u64, RepositoryError> {
        let shown = self.shown(policy, span).await;
        let (id, limit) = (&policy.policy().id, policy.policy().spec.limit);
        let recent = self.0.recent.units(id, span).unwrap_or_default();
        // Reserved units may have come back since.
        let confirmed = |used| used == recent.taken() && recent.reserved == 0;
        if let Ok(Some(used)) = shown
            && used >= recent.taken()
            && (confirmed(used) || QuotaUsage::admits(used, amount, limit))
        {
            return Ok(used);
        }
        let kept = match (self.0.ledger_usage(id, span).await, &shown) {
            (Ok(kept), _) => kept,
            (Err(_), Ok(Some(used))) => return Ok(*used),
            (Err(error), _) => return Err(error),
        };
        self.0.recent.remove(id);
        // Correct the counter, so that the next check needs no ledger.
        if let Ok(shown) = shown
            && self.0.counter.is_shared()
        {
            let _ = self.0.correct_counter(policy, span, shown, kept).await;
        }
        Ok(kept)
    }

    /// Returns the usage of the counter, if it is shared.
    async fn shown(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
    ) -> Result<Option<u64>, StoreError> {
        let counter = &self.0.counter;
        if counter.is_shared() { counter.read(policy, span).await } else { Ok(None) }
    }
}
