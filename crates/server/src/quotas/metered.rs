//! A ledger whose transactions are counted.

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{
    Entry, Increment, Listed, Page, PeriodUsage, Pruned, QuotaId, QuotaLedger, RepositoryError,
    Reset, Retention, Touched,
};
use tokio::time::Instant;

use crate::metrics::QuotaNumbers;

/// A ledger whose transactions are counted.
pub(super) struct MeteredLedger {
    ledger: Arc<dyn QuotaLedger>,
    numbers: QuotaNumbers,
}

impl MeteredLedger {
    pub(super) fn new(ledger: Arc<dyn QuotaLedger>, numbers: QuotaNumbers) -> Self {
        Self { ledger, numbers }
    }
}

#[async_trait]
impl QuotaLedger for MeteredLedger {
    async fn commit(&self, increments: &[Increment]) -> Result<Vec<Entry>, RepositoryError> {
        let started = Instant::now();
        let committed = self.ledger.commit(increments).await;
        self.numbers.committed(increments.len(), started.elapsed(), committed.is_ok());
        committed
    }

    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError> {
        self.ledger.usage(policy, period_name).await
    }

    async fn history(
        &self,
        policy: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError> {
        self.ledger.history(policy, page).await
    }

    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError> {
        self.ledger.reset(reset).await
    }

    async fn touched(&self, since: Timestamp, max: u32) -> Result<Vec<Touched>, RepositoryError> {
        self.ledger.touched(since, max).await
    }

    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError> {
        self.ledger.close_periods(now).await
    }

    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError> {
        self.ledger.prune(retention).await
    }
}
