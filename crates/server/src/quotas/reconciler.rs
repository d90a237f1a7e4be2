//! Keeps the counters what the ledger says.

use std::time::Duration;

use headgate_quota::usecase::Housekeeping;
use tokio::time;
use tracing::{info, warn};

use crate::metrics::QuotaNumbers;

/// Compares counters with the ledger every now and then, and puts them right.
pub(crate) struct Reconciler {
    house: Housekeeping,
    numbers: QuotaNumbers,
    every: Duration,
    /// Whether the last attempt failed, so that an outage is told once.
    failing: bool,
}

/// How many rounds a period is looked at after it last changed.
const ROUNDS: u32 = 6;

impl Reconciler {
    pub(crate) const fn new(house: Housekeeping, numbers: QuotaNumbers, every: Duration) -> Self {
        Self { house, numbers, every, failing: false }
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        loop {
            time::sleep(self.every).await;
            self.reconcile().await;
        }
    }

    async fn reconcile(&mut self) {
        match self.house.reconcile(self.every * ROUNDS).await {
            Ok(drift) => {
                self.numbers.drifted(drift);
                let (missing, behind, ahead) = (drift.missing, drift.behind, drift.ahead);
                if missing + behind + ahead > 0 {
                    info!(missing, behind, ahead, "Quota counters were put right");
                }
                self.failing = false;
            }
            Err(error) => {
                if !self.failing {
                    warn!(%error, "Cannot compare the quota counters with the ledger");
                }
                self.failing = true;
            }
        }
    }
}
