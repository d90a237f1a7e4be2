//! The state that use cases share.

use std::sync::Arc;

use headgate::{Clock, StoreError, Timestamp};

use crate::{
    ActivePolicy, CommittedUsage, PeriodSpan, PolicyCatalog, QuotaCounter, QuotaId, QuotaLedger,
    QuotaPolicyRepository, RepositoryError, recent_usage::RecentUsage,
};

/// The state that use cases share: policies, ledger, counters and recent usage. Clones share it,
/// too.
#[derive(Clone)]
pub struct Quotas {
    pub(crate) repository: Arc<dyn QuotaPolicyRepository>,
    pub(crate) ledger: Arc<dyn QuotaLedger>,
    pub(crate) counter: Arc<dyn QuotaCounter>,
    pub(crate) catalog: Arc<PolicyCatalog>,
    pub(crate) recent: Arc<RecentUsage>,
}

impl Quotas {
    /// Creates quotas with policies in `repository` and usage in `ledger`. Periods are chosen by
    /// `clock`, which shows the ledger's time.
    pub fn new(
        repository: Arc<dyn QuotaPolicyRepository>,
        ledger: Arc<dyn QuotaLedger>,
        counter: Arc<dyn QuotaCounter>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let catalog = Arc::new(PolicyCatalog::new(Arc::clone(&repository), clock));
        Self { repository, ledger, counter, catalog, recent: Arc::default() }
    }

    /// Returns the current policies, which must be refreshed when they change.
    pub const fn catalog(&self) -> &Arc<PolicyCatalog> {
        &self.catalog
    }

    /// Returns the ledger's time, which decides the period.
    pub fn now(&self) -> Timestamp {
        self.catalog.now()
    }

    pub(crate) async fn find(&self, id: &QuotaId) -> Result<Arc<ActivePolicy>, RepositoryError> {
        self.catalog.find(id).await
    }

    /// Returns the units that are used or reserved, as the ledger has them.
    pub(crate) async fn ledger_usage(
        &self,
        id: &QuotaId,
        span: &PeriodSpan,
    ) -> Result<u64, RepositoryError> {
        let usage = self.ledger.usage(id, &span.name).await?;
        Ok(usage.map_or(0, |usage| usage.taken()))
    }

    /// Corrects a counter to `kept`, which was read from the ledger after the counter showed
    /// `shown`.
    pub(crate) async fn correct_counter(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        shown: Option<u64>,
        kept: u64,
    ) -> Result<(), StoreError> {
        if shown.is_some_and(|shown| shown > kept) {
            self.counter.forget(policy, span).await?;
        }
        self.counter.raise(policy, span, CommittedUsage::from_total(kept)).await.map(drop)
    }

    /// Compares a counter that may show too much with the ledger, at most once a second per policy.
    /// Errors are left to the next comparison.
    pub(crate) async fn verify_counter(&self, policy: &ActivePolicy, span: &PeriodSpan) {
        let id = &policy.policy().id;
        if !self.recent.comparison_is_due(id, self.now()) {
            return;
        }
        if let Ok(Some(shown)) = self.counter.read(policy, span).await
            && let Ok(kept) = self.ledger_usage(id, span).await
            && shown > kept
        {
            let _ = self.correct_counter(policy, span, Some(shown), kept).await;
        }
    }
}

impl std::fmt::Debug for Quotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quotas").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}
