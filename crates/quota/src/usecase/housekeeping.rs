//! What is done every now and then: counters compared, periods closed, old things forgotten.

use std::time::Duration;

use headgate::{StoreError, Timestamp};

use crate::{ActivePolicy, Pruned, Quotas, RepositoryError, Retention, Span};

/// Keeps the house. Replicas may do it at the same time.
#[derive(Clone, Debug)]
pub struct Housekeeping(Quotas);

/// How far counters were from the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// How many counters were compared.
    pub compared: u64,
    /// How many were missing, and made again.
    pub missing: u64,
    /// How many units were used that counters did not show.
    pub behind: u64,
    /// How many units counters showed that were not used.
    pub ahead: u64,
}

/// How a counter differs from the ledger, and by how many units.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Difference {
    Missing(u64),
    Behind(u64),
    Ahead(u64),
}

/// The most counters that are compared at a time.
const MAX_COMPARED: u32 = 10_000;

// === impl Housekeeping ===

impl Housekeeping {
    /// Keeps the house of `quotas`.
    pub fn new(quotas: &Quotas) -> Self {
        Self(quotas.clone())
    }

    /// Closes the periods that are over; says how many there were. What was admitted in them and
    /// comes late is still counted in them.
    pub async fn close_periods(&self) -> Result<u64, RepositoryError> {
        self.0.ledger.close_periods(self.0.now()).await
    }

    /// Forgets what is old enough.
    pub async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError> {
        self.0.ledger.prune(retention).await
    }

    /// Compares the counters of periods that changed in the last `window` with the ledger, and puts
    /// them right. A store that cannot be asked has no counters to compare.
    pub async fn reconcile(&self, window: Duration) -> Result<Drift, RepositoryError> {
        let now = self.0.now();
        let window = u64::try_from(window.as_micros()).unwrap_or(u64::MAX);
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(window));
        let mut drift = Drift::default();
        for touched in self.0.ledger.touched(since, MAX_COMPARED).await? {
            let Some(policy) = self.0.catalog.load(&touched.policy) else {
                continue;
            };
            let span = policy.span(now);
            if span.name != touched.period_name {
                continue;
            }
            if self.compare(&policy, &span, touched.used, &mut drift).await?.is_err() {
                break;
            }
        }
        Ok(drift)
    }

    async fn compare(
        &self,
        policy: &ActivePolicy,
        span: &Span,
        touched: u64,
        drift: &mut Drift,
    ) -> Result<Result<(), StoreError>, RepositoryError> {
        let (counter, id) = (&self.0.counter, &policy.policy().id);
        let before = match counter.read(policy, span).await {
            Ok(shown) => shown,
            Err(error) => return Ok(Err(error)),
        };
        drift.compared += 1;
        let first = Difference::of(before, touched);
        if first.is_none() {
            return Ok(Ok(()));
        }
        let kept = self.0.kept(id, span).await?;
        let after = match counter.read(policy, span).await {
            Ok(shown) => shown,
            Err(error) => return Ok(Err(error)),
        };
        // Increments that are on their way look like drift: what is one stays the same. Raising is
        // right in any case.
        if let Some(second) = Difference::of(after, kept)
            && Some(second) == first
        {
            drift.count(second);
        }
        Ok(self.0.put_right(policy, span, before, kept).await)
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
    /// How a counter that shows this differs from a ledger that says that.
    fn of(shown: Option<u64>, kept: u64) -> Option<Self> {
        match shown {
            None => (kept > 0).then_some(Self::Missing(kept)),
            Some(shown) if shown < kept => Some(Self::Behind(kept - shown)),
            Some(shown) => (shown > kept).then(|| Self::Ahead(shown - kept)),
        }
    }
}
