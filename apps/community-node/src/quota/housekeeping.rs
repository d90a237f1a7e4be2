//! Housekeeping: closes old days and deletes old data.

use std::time::Duration;

use headgate::Timestamp;
use headgate_quota::{
    QuotaPeriod, RepositoryError, Retention, SubjectType, Unused, usecase::Housekeeping,
};
use tokio::time;
use tracing::warn;

use super::{DailyQuotas, NAME};

/// Interval of housekeeping.
const HOUR: Duration = Duration::from_secs(3_600);

/// Retention of days and their events, and of request ids.
const KEPT_DAYS: u64 = 180;
const REQUEST_ID_DAYS: u64 = 7;

/// Retention of a policy after its last use. Its day is over then, and it is created again when it
/// is needed.
const UNUSED_DAYS: u64 = 1;

// === impl DailyQuotas ===

impl DailyQuotas {
    /// Closes past days and deletes old data at intervals; never returns. Nodes may do it
    /// concurrently.
    pub(super) async fn run_housekeeping(&self) {
        let housekeeping = Housekeeping::new(&self.quotas);
        let mut hours = time::interval(HOUR);
        loop {
            hours.tick().await;
            // If the database is unavailable, everything stays until the next hour.
            let closed = housekeeping.close_periods().await;
            let pruned = housekeeping.prune(&retention(self.quotas.now())).await;
            let deleted = self.delete_unused().await;
            for done in [closed.map(drop), pruned.map(drop), deleted.map(drop)] {
                if let Err(error) = done {
                    warn!(%error, "failed to delete old quotas; retrying in an hour");
                }
            }
            if !self.has_room() {
                warn!(quotas = self.quotas.catalog().len(), "too many quotas; new keys share one");
            }
        }
    }

    /// Deletes our own policies that were not used for a day, and returns their number. Every new
    /// key gets one, and new keys are free.
    async fn delete_unused(&self) -> Result<u64, RepositoryError> {
        let unused = Unused {
            name: NAME,
            subject_type: SubjectType::User,
            period: QuotaPeriod::Daily,
            before: ago(self.quotas.now(), UNUSED_DAYS),
        };
        let deleted = self.repository.delete_unused(&unused).await?;
        if deleted > 0 {
            // There is room again; other nodes are notified.
            self.quotas.catalog().refresh().await?;
        }
        Ok(deleted)
    }
}

fn retention(now: Timestamp) -> Retention {
    Retention {
        periods_before: ago(now, KEPT_DAYS),
        request_ids_before: ago(now, REQUEST_ID_DAYS),
        events_before: ago(now, KEPT_DAYS),
        sinks: Vec::new(),
    }
}

fn ago(now: Timestamp, days: u64) -> Timestamp {
    Timestamp::from_micros(now.as_micros().saturating_sub(days * 86_400_000_000))
}

#[cfg(test)]
mod tests;
