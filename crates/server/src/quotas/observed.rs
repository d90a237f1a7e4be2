//! A ledger whose commits are counted and told of.

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{
    Entry, Increment, Listed, Page, PeriodUsage, Pruned, QuotaId, QuotaLedger, RepositoryError,
    Reset, Retention, Touched, Verdict,
};
use tokio::time::Instant;

use crate::{events::Bell, metrics::QuotaNumbers};

/// A ledger that counts its commits, and rings when one may have written events. Whoever hears it
/// looks.
pub(super) struct ObservedLedger {
    ledger: Arc<dyn QuotaLedger>,
    numbers: QuotaNumbers,
    bell: Bell,
}

impl ObservedLedger {
    pub(super) fn new(ledger: Arc<dyn QuotaLedger>, numbers: QuotaNumbers, bell: Bell) -> Self {
        Self { ledger, numbers, bell }
    }
}

#[async_trait]
impl QuotaLedger for ObservedLedger {
    async fn commit(&self, increments: &[Increment]) -> Result<Vec<Entry>, RepositoryError> {
        let started = Instant::now();
        let committed = self.ledger.commit(increments).await;
        self.numbers.committed(increments.len(), started.elapsed(), committed.is_ok());
        let entries = committed?;
        if increments.iter().zip(&entries).any(|(increment, entry)| may_tell(increment, entry)) {
            self.bell.ring();
        }
        Ok(entries)
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

/// Thresholds are whole percentages, so that only an increment that passes one can reach any; a
/// refusal below the limit may be the first. What a changed limit brings about is found by polling.
fn may_tell(increment: &Increment, entry: &Entry) -> bool {
    let percent = |used: u64| u128::from(used) * 100 / u128::from(entry.limit.max(1));
    match entry.verdict {
        Verdict::Taken => {
            percent(entry.used) != percent(entry.used.saturating_sub(increment.amount))
        }
        Verdict::Refused => entry.used < entry.limit,
        Verdict::Replayed
        | Verdict::Impossible
        | Verdict::OutOfPeriod
        | Verdict::Disabled
        | Verdict::Conflict
        | Verdict::NotFound => false,
    }
}

#[cfg(test)]
mod tests {
    use headgate_quota::Span;

    use super::*;

    fn tells(verdict: Verdict, amount: u64, used: u64, limit: u64) -> bool {
        let (start, end) = (Timestamp::from_micros(0), Timestamp::from_micros(1));
        let span = Span { name: "2026-02-23".to_owned(), start, end };
        let policy: QuotaId = "quota_1".parse().unwrap();
        let increment =
            Increment { policy, span: Arc::new(span), amount, request_id: None, at: start };
        may_tell(&increment, &Entry { verdict, used, limit })
    }

    #[test]
    fn it_rings_where_a_threshold_or_the_limit_may_have_been_reached() {
        assert!(tells(Verdict::Taken, 1, 8000, 10_000));
        assert!(!tells(Verdict::Taken, 1, 8001, 10_000));
        assert!(tells(Verdict::Taken, 100, 8001, 10_000));
        assert!(tells(Verdict::Taken, 1, 10_000, 10_000));
        assert!(tells(Verdict::Taken, 1, 1, 1));
        assert!(tells(Verdict::Refused, 5, 8, 10));
        assert!(!tells(Verdict::Refused, 1, 10, 10));
        assert!(!tells(Verdict::Impossible, 11, 8, 10));
        assert!(!tells(Verdict::Replayed, 1, 10, 10));
    }
}
