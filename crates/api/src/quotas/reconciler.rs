//! Reconciles the counters with the ledger, and ends expired reservations.

use std::time::Duration;

use headgate_config::LiveDuration;
use headgate_quota::{
    RepositoryError,
    usecase::{Drift, Housekeeping},
};
use tracing::{info, warn};

use super::QuotaMetrics;

/// Periodically ends expired reservations, compares the counters with the ledger, and corrects
/// them.
pub struct Reconciler {
    house: Housekeeping,
    metrics: QuotaMetrics,
    every: LiveDuration,
    /// True if the last attempt failed: an outage is logged once.
    failing: bool,
}

/// Rounds in which a period is compared after it last changed.
const ROUNDS: u32 = 6;

impl Reconciler {
    /// Creates a reconciler that runs `every` so often.
    pub const fn new(house: Housekeeping, metrics: QuotaMetrics, every: LiveDuration) -> Self {
        Self { house, metrics, every, failing: false }
    }

    /// Never returns.
    pub async fn run(mut self) {
        loop {
            self.every.sleep(Duration::MAX).await;
            self.reconcile().await;
        }
    }

    async fn round(&self) -> Result<Drift, RepositoryError> {
        let expired = self.house.release_expired().await?;
        self.metrics.expired(expired);
        self.house.reconcile(self.every.get() * ROUNDS).await
    }

    async fn reconcile(&mut self) {
        match self.round().await {
            Ok(drift) => {
                self.metrics.drifted(drift);
                let (missing, behind, ahead) = (drift.missing, drift.behind, drift.ahead);
                if missing + behind + ahead > 0 {
                    info!(missing, behind, ahead, "corrected quota counters");
                }
                self.failing = false;
            }
            Err(error) => {
                if !self.failing {
                    warn!(%error, "failed to compare the quota counters with the ledger");
                }
                self.failing = true;
            }
        }
    }
}
