//! Periodic tasks: reconcile counters, end expired reservations, close periods, delete old data.

use std::time::Duration;

use headgate::{StoreError, Timestamp};

use crate::{ActivePolicy, PeriodSpan, Pruned, Quotas, RepositoryError, Retention};

/// Periodic tasks. Replicas may run them concurrently.
#[derive(Clone, Debug)]
pub struct Housekeeping(Quotas);

/// Differences between counters and the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Number of compared counters.
    pub compared: u64,
    /// Number of missing counters, which were created again.
    pub missing: u64,
    /// Units in the ledger that counters did not show.
    pub behind: u64,
    /// Units that counters showed beyond the ledger.
    pub ahead: u64,
}

/// The difference between a counter and the ledger in units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Difference {
    Missing(u64),
    Behind(u64),
    Ahead(u64),
}

/// Maximum number of counters per reconciliation.
const MAX_COMPARED: u32 = 10_000;

// === impl Housekeeping ===

impl Housekeeping {
    /// Creates the use case.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// Ends reservations whose TTL is over; returns how many. Operations on their policies do so,
    /// too.
    pub async fn release_expired(&self) -> Result<u64, RepositoryError> {
        self.0.ledger.release_expired().await
    }

    /// Closes periods that have ended; returns how many. Late increments of a closed period still
    /// count in it.
    pub async fn close_periods(&self) -> Result<u64, RepositoryError> {
        self.0.ledger.close_periods(self.0.now()).await
    }

    /// Deletes old data.
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError> {
        self.0.ledger.prune(retention).await
    }

    /// Compares the counters of periods that changed in the last `window` with the ledger, and
    /// corrects them. Ends early if the store is unavailable.
    pub async fn reconcile(&self, window: Duration) -> Result<Drift, RepositoryError> {
        let now = self.0.now();
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(window));
        let mut drift = Drift::default();
        for changed in self.0.ledger.changed_periods(since, MAX_COMPARED).await? {
            let Some(policy) = self.0.catalog.load(&changed.policy) else {
                continue;
            };
            let span = policy.span(now);
            if span.name != changed.period_name {
                continue;
            }
            if self.compare(&policy, &span, changed.taken, &mut drift).await?.is_err() {
                break;
            }
        }
        Ok(drift)
    }

    async fn compare(
        &self,
        policy: &ActivePolicy,
        span: &PeriodSpan,
        used: u64,
        drift: &mut Drift,
    ) -> Result<Result<(), StoreError>, RepositoryError> {
        let (counter, id) = (&self.0.counter, &policy.policy().id);
        let before = match counter.read(policy, span).await {
            Ok(shown) => shown,
            Err(error) => return Ok(Err(error)),
        };
        drift.compared += 1;
        let first = Difference::of(before, used);
        if first.is_none() {
            return Ok(Ok(()));
        }
        let kept = self.0.ledger_usage(id, span).await?;
        let after = match counter.read(policy, span).await {
            Ok(shown) => shown,
            Err(error) => return Ok(Err(error)),
        };
        // Increments in flight look like drift, too, but change between two comparisons. Raising is
        // correct in any case.
        if let Some(second) = Difference::of(after, kept)
            && Some(second) == first
        {
            drift.count(second);
        }
        Ok(self.0.correct_counter(policy, span, before, kept).await)
    }
}

// === impl Drift ===

impl Drift {
    fn count(&mut self, difference: Difference) {
        match difference {
            Difference::Missing(units) => {
                self.missing += 1;
                self.behind += units;
            }
            Difference::Behind(units) => self.behind += units,
            Difference::Ahead(units) => self.ahead += units,
        }
    }
}

// === impl Difference ===

impl Difference {
    /// Compares a counter with the ledger.
    fn of(shown: Option<u64>, kept: u64) -> Option<Self> {
        match shown {
            None => (kept > 0).then_some(Self::Missing(kept)),
            Some(shown) if shown < kept => Some(Self::Behind(kept - shown)),
            Some(shown) => (shown > kept).then(|| Self::Ahead(shown - kept)),
        }
    }
}
