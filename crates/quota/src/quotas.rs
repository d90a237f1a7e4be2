//! What the use cases share.

use std::sync::Arc;

use headgate::{Clock, StoreError, Timestamp};

use crate::{
    ActivePolicy, PolicyCatalog, QuotaCounter, QuotaId, QuotaLedger, QuotaPolicyRepository,
    RepositoryError, Span, Standing, known::Known,
};

/// What the use cases share: policies, the ledger, the counters, and what was heard lately.
/// Clones share it too.
#[derive(Clone)]
pub struct Quotas {
    pub(crate) repository: Arc<dyn QuotaPolicyRepository>,
    pub(crate) ledger: Arc<dyn QuotaLedger>,
    pub(crate) counter: Arc<dyn QuotaCounter>,
    pub(crate) catalog: Arc<PolicyCatalog>,
    pub(crate) known: Arc<Known>,
}

impl Quotas {
    /// Quotas whose policies are in `repository`, whose usage is in `ledger`, and whose periods go
    /// by `clock`, which shows the ledger's time.
    pub fn new(
        repository: Arc<dyn QuotaPolicyRepository>,
        ledger: Arc<dyn QuotaLedger>,
        counter: Arc<dyn QuotaCounter>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let catalog = Arc::new(PolicyCatalog::new(Arc::clone(&repository), clock));
        Self { repository, ledger, counter, catalog, known: Arc::default() }
    }

    /// The policies in force, to be refreshed when they change.
    pub const fn catalog(&self) -> &Arc<PolicyCatalog> {
        &self.catalog
    }

    /// The time that decides the period: the ledger's.
    pub fn now(&self) -> Timestamp {
        self.catalog.now()
    }

    pub(crate) async fn find(&self, id: &QuotaId) -> Result<Arc<ActivePolicy>, RepositoryError> {
        self.catalog.find(id).await
    }

    /// Usage in the ledger.
    pub(crate) async fn kept(&self, id: &QuotaId, span: &Span) -> Result<u64, RepositoryError> {
        let usage = self.ledger.usage(id, &span.name).await?;
        Ok(usage.map_or(0, |usage| usage.used))
    }

    /// Makes a counter show `kept`, which the ledger said after the counter showed `shown`.
    pub(crate) async fn put_right(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        shown: Option<u64>,
        kept: u64,
    ) -> Result<(), StoreError> {
        if shown.is_some_and(|shown| shown > kept) {
            self.counter.forget(policy, span).await?;
        }
        self.counter.raise(policy, span, Standing::of(kept)).await.map(drop)
    }

    /// Asks the ledger about a counter that may show too much, at most once a second for a policy.
    /// Failures leave that to the next comparison.
    pub(crate) async fn distrust(&self, policy: &ActivePolicy, span: &Span) {
        let id = &policy.policy().id;
        if !self.known.is_due(id, self.now()) {
            return;
        }
        if let Ok(Some(shown)) = self.counter.read(policy, span).await
            && let Ok(kept) = self.kept(id, span).await
            && shown > kept
        {
            let _ = self.put_right(policy, span, Some(shown), kept).await;
        }
    }
}

impl std::fmt::Debug for Quotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quotas").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}
