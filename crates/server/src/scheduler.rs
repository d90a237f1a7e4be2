//! Closes periods that are over and forgets what is old, when the operator wants it.

use std::{sync::Arc, time::Duration};

use headgate::{Clock, Timestamp};
use headgate_quota::{Pruned, QuotaEventLog, QuotaLedger, RepositoryError, Retention};
use tokio::time;
use tracing::{debug, info, warn};

use crate::{
    config::{QuotaConfig, RetentionConfig},
    cron::Cron,
    events::{Events, Stopping},
};

/// Keeps the house of quotas at the scheduled times, and at start: what was missed is made up for.
/// Nothing that runs is touched, so that it does not matter how often, how late or by how many it
/// is done.
pub(crate) struct Scheduler {
    ledger: Arc<dyn QuotaLedger>,
    log: Arc<dyn QuotaEventLog>,
    schedules: [Cron; 2],
    retention: RetentionConfig,
    /// Who must have an event before it is forgotten.
    sinks: Vec<String>,
    clock: Arc<dyn Clock>,
    stopping: Stopping,
}

/// What only one replica does at a time.
const TASK: &str = "quota-housekeeping";

/// How often the clock is looked at: it can be set, and machines can sleep.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(10);

impl Scheduler {
    pub(crate) fn new(
        config: &QuotaConfig,
        ledger: Arc<dyn QuotaLedger>,
        events: &Events,
        sinks: Vec<String>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let schedule = &config.reset_schedule;
        Self {
            ledger,
            log: Arc::clone(events.log()),
            schedules: [schedule.daily.get().clone(), schedule.monthly.get().clone()],
            retention: config.retention.clone(),
            sinks,
            clock,
            stopping: events.stopping(),
        }
    }

    /// Goes on until it is told to stop.
    pub(crate) async fn run(mut self) {
        let mut failing = false;
        let mut due = self.clock.now();
        while self.wait_until(due).await {
            let now = self.clock.now();
            due = match self.keep_house(now).await {
                Ok(()) => {
                    failing = false;
                    self.next_after(now)
                }
                Err(error) => {
                    if !failing {
                        warn!(%error, "Cannot close quota periods: trying again");
                    }
                    failing = true;
                    now + RETRY
                }
            };
        }
    }

    /// The next time that either schedule names.
    fn next_after(&self, now: Timestamp) -> Timestamp {
        let next = self.schedules.iter().filter_map(|schedule| schedule.next_after(now)).min();
        next.unwrap_or(now + Duration::from_secs(24 * 60 * 60))
    }

    /// Whether it is time; if not, it is time to stop.
    async fn wait_until(&mut self, due: Timestamp) -> bool {
        loop {
            let left = Duration::from_micros(due.since(self.clock.now()));
            if self.stopping.is_told() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            tokio::select! {
                () = time::sleep(left.min(LOOK_EVERY)) => {}
                () = self.stopping.told() => {}
            }
        }
    }

    async fn keep_house(&self, now: Timestamp) -> Result<(), RepositoryError> {
        let Some(mut lead) = self.log.lead(TASK).await? else {
            debug!("Another replica closes quota periods");
            return Ok(());
        };
        let closed = self.ledger.close_periods(now).await?;
        if !lead.holds().await {
            return Ok(());
        }
        let Pruned { periods, request_ids, events } =
            self.ledger.prune(&self.retention_at(now)).await?;
        if closed + periods + request_ids + events > 0 {
            info!(closed, periods, request_ids, events, "Closed quota periods, forgot old ones");
        }
        Ok(())
    }

    fn retention_at(&self, now: Timestamp) -> Retention {
        let before = |kept: Duration| {
            let kept = u64::try_from(kept.as_micros()).unwrap_or(u64::MAX);
            Timestamp::from_micros(now.as_micros().saturating_sub(kept))
        };
        Retention {
            periods_before: before(self.retention.periods()),
            request_ids_before: before(self.retention.request_ids()),
            events_before: before(self.retention.events()),
            sinks: self.sinks.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
