//! What is old is closed and forgotten.

use std::time::Duration;

use headgate::Timestamp;
use headgate_quota::{
    QuotaPeriod, RepositoryError, Retention, SubjectType, Unused, usecase::Housekeeping,
};
use tokio::time;
use tracing::warn;

use super::{DailyQuotas, NAME};

/// How often old things are looked for.
const HOUR: Duration = Duration::from_secs(3_600);

/// How long days, and what was told of them, are kept, and how long request ids.
const KEPT_DAYS: u64 = 180;
const REQUEST_ID_DAYS: u64 = 7;

/// How long a policy is kept after its last use: its day is over then, so it says nothing any more. It is
/// made anew when it is needed.
const UNUSED_DAYS: u64 = 1;

// === impl DailyQuotas ===

impl DailyQuotas {
    /// Closes days that are over and forgets what is old, for ever. Nodes may do it at the same time.
    pub(super) async fn keep_house(&self) {
        let house = Housekeeping::new(&self.quotas);
        let mut hours = time::interval(HOUR);
        loop {
            hours.tick().await;
            // A database that is away keeps everything until the next hour.
            let closed = house.close_periods().await;
            let pruned = house.prune(&retention(self.quotas.now())).await;
            let deleted = self.delete_unused().await;
            for done in [closed.map(drop), pruned.map(drop), deleted.map(drop)] {
                if let Err(error) = done {
                    warn!(%error, "Old quotas are kept for another hour");
                }
            }
            if !self.has_room() {
                warn!("There are {} quotas: new keys share one", self.quotas.catalog().len());
            }
        }
    }

    /// Deletes those of our own policies that were not used for a day; says how many. Whoever signs in
    /// with a new key gets one, and keys cost nothing.
    async fn delete_unused(&self) -> Result<u64, RepositoryError> {
        let unused = Unused {
            name: NAME,
            subject_type: SubjectType::User,
            period: QuotaPeriod::Daily,
            before: ago(self.quotas.now(), UNUSED_DAYS),
        };
        let deleted = self.repository.delete_unused(&unused).await?;
        if deleted > 0 {
            // There is room again, which others hear of.
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
