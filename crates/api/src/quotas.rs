//! The use cases of quotas as REST and gRPC serve them: metered, with one list of errors.

mod commits;
mod metrics;
mod reconciler;
mod refusal;
mod reservations;
mod skew;

use std::sync::Arc;

use headgate_config::LiveDuration;
use headgate_events::NewEvents;
use headgate_persistence::{LedgerClock, QuotaDatabase};
use headgate_quota::{
    Author, Committer, Listed, Page, PeriodUsage, PolicyCatalog, QuotaId, QuotaUsage, Quotas,
    StoreCounter,
    usecase::{
        Housekeeping, IncrementUsage, Incremented, ManagePolicies, ReadUsage, RefundDone,
        RefundUsage, ResetDone, ResetError, ResetUsage, UsageCheck,
    },
};
use headgate_stores::{Counters, Probe};
use headgate_telemetry::trace::Span;

use self::commits::CommitMonitor;
use crate::completion::run_to_completion;

pub use self::{
    metrics::QuotaMetrics, reconciler::Reconciler, refusal::QuotaRefusal,
    reservations::QuotaReservations, skew::Skew,
};

/// The use cases of quotas, and what they need.
pub struct QuotaServices {
    /// The policies in force.
    pub catalog: Arc<PolicyCatalog>,
    /// Managing policies.
    pub policies: ManagePolicies,
    reset: ResetUsage,
    usage: ReadUsage,
    increment: IncrementUsage,
    refund: RefundUsage,
    reservations: QuotaReservations,
    probe: Probe,
    metrics: QuotaMetrics,
    /// Clock of the database.
    pub clock: Arc<LedgerClock>,
}

/// Bounds and intervals of quotas.
pub struct QuotaSettings<'a> {
    /// Prefix of the counters' keys.
    pub key_prefix: &'a str,
    /// Maximum number of increments and other operations that wait for the ledger.
    pub queue_capacity: usize,
    /// Interval of comparing counters with the ledger.
    pub reconcile_interval: LiveDuration,
}

/// Tasks in the background.
pub struct QuotaTasks {
    /// Commits increments and other operations to the ledger.
    pub committer: Committer,
    /// Reconciles counters with the ledger.
    pub reconciler: Reconciler,
}

impl QuotaServices {
    /// Creates the use cases. Policies and usage are in `kept`, counters in a store; `new_events`
    /// is notified of events.
    pub fn new(
        settings: &QuotaSettings<'_>,
        kept: &QuotaDatabase,
        new_events: NewEvents,
        counters: Counters,
        metrics: QuotaMetrics,
    ) -> (Self, QuotaTasks) {
        let Counters { store, shared, probe } = counters;
        let (kept, clock) = (Arc::new(kept.clone()), Arc::clone(kept.clock()));
        let counter = StoreCounter::new(store, settings.key_prefix, shared);
        let quotas = Quotas::new(kept.clone(), kept, Arc::new(counter), clock.clone());
        let (increment, committer) = IncrementUsage::new(&quotas, settings.queue_capacity);
        let monitor = CommitMonitor { metrics: metrics.clone(), new_events };
        let committer = committer.with_observer(Arc::new(monitor));
        let house = Housekeeping::new(&quotas);
        let reconciler =
            Reconciler::new(house, metrics.clone(), settings.reconcile_interval.clone());
        let services = Self {
            catalog: Arc::clone(quotas.catalog()),
            policies: ManagePolicies::new(&quotas),
            reset: ResetUsage::new(&quotas),
            usage: ReadUsage::new(&quotas),
            refund: RefundUsage::new(&increment),
            reservations: QuotaReservations::new(&increment, metrics.clone()),
            increment,
            probe,
            metrics,
            clock,
        };
        (services, QuotaTasks { committer, reconciler })
    }

    /// Uses `amount`, and counts the outcome. An amount beyond the limit is an error.
    pub async fn increment(
        &self,
        id: &QuotaId,
        amount: u64,
        request_id: Option<&str>,
    ) -> Result<Incremented, QuotaRefusal> {
        let done = self.increment.increment(id, amount, request_id).await;
        self.metrics.incremented(&done);
        match done {
            Ok(done) => {
                Span::admitted(done.allowed);
                if done.allowed {
                    return Ok(done);
                }
                Err(QuotaRefusal::Exceeded(Box::new(done.usage)))
            }
            Err(error) => Err(self.diagnose(error).await),
        }
    }

    /// Gives back what an increment charged under `request_id`, once, and counts the outcome.
    pub async fn refund(&self, id: &QuotaId, request_id: &str) -> Result<RefundDone, QuotaRefusal> {
        let done = self.refund.refund(id, request_id).await;
        self.metrics.refunded(&done);
        match done {
            Ok(done) => Ok(done),
            Err(error) => Err(self.diagnose(error).await),
        }
    }

    /// Returns the reservations.
    pub const fn reservations(&self) -> &QuotaReservations {
        &self.reservations
    }

    /// Resets the usage of the current period. The ledger records it in the same transaction; the
    /// counter follows even if the caller disconnects.
    pub async fn reset(
        &self,
        id: &QuotaId,
        reason: &str,
        author: Author,
    ) -> Result<ResetDone, ResetError> {
        let (reset, id, reason) = (self.reset.clone(), id.clone(), reason.to_owned());
        run_to_completion(async move { reset.reset(&id, &reason, author).await }).await
    }

    /// Returns usage in the current period.
    pub async fn usage(&self, id: &QuotaId) -> Result<QuotaUsage, QuotaRefusal> {
        match self.usage.usage(id).await {
            Ok(usage) => Ok(usage),
            Err(error) => Err(self.diagnose(error).await),
        }
    }

    /// Decides if `amount`, or 1, would be admitted now.
    pub async fn check(
        &self,
        id: &QuotaId,
        amount: Option<u64>,
    ) -> Result<UsageCheck, QuotaRefusal> {
        match self.usage.check(id, amount).await {
            Ok(checked) => {
                Span::admitted(checked.allowed);
                Ok(checked)
            }
            Err(error) => Err(self.diagnose(error).await),
        }
    }

    /// Returns one page of the periods in which a policy was used.
    pub async fn history(
        &self,
        id: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, QuotaRefusal> {
        Ok(self.usage.history(id, page).await?)
    }

    /// Updates the gauges that are only read when metrics are scraped.
    pub fn measure(&self) {
        self.metrics.set_sizes(self.catalog.len(), self.increment.waiting());
        self.metrics.skewed(self.clock.skew());
    }

    /// Returns the difference between this machine's clock and the database's, if it is too large.
    pub fn skew(&self) -> Option<Skew> {
        Skew::of(&self.clock)
    }

    /// Distinguishes an outage of the ledger from one of ledger and counters, if no decision is
    /// possible.
    async fn diagnose(&self, error: impl Into<QuotaRefusal>) -> QuotaRefusal {
        match error.into() {
            QuotaRefusal::NoDatabase(cause) => match self.probe.ask().await {
                Ok(()) => QuotaRefusal::NoDatabase(cause),
                Err(store) => QuotaRefusal::Undecided(format!("{cause}; {store}")),
            },
            other => other,
        }
    }
}
