//! Closes periods that are over and forgets what is old, when the operator wants it.

use std::{sync::Arc, time::Duration};

use headgate::{Clock, Timestamp};
use headgate_quota::{Pruned, QuotaEventLog, QuotaLedger, RepositoryError, Retention};
use headgate_ratelimit::AuditLog;
use tokio::time;
use tracing::{debug, info, warn};

use crate::{
    config::{QuotaConfig, RetentionConfig},
    cron::Cron,
    events::{Events, Stopping},
};

/// Keeps the house of quotas, and the audit log, at the scheduled times, and at start: what was missed is made up for.
/// Nothing that runs is touched, so that it does not matter how often, how late or by how many it
/// is done.
pub(crate) struct Scheduler {
    ledger: Arc<dyn QuotaLedger>,
    audit: AuditRetention,
    log: Arc<dyn QuotaEventLog>,
    schedules: [Cron; 2],
    retention: RetentionConfig,
    /// Who must have an event before it is forgotten.
    sinks: Vec<String>,
    clock: Arc<dyn Clock>,
    stopping: Stopping,
}

/// The audit log, and how long its entries are kept, if not for ever.
pub(crate) struct AuditRetention {
    pub(crate) log: Arc<dyn AuditLog>,
    pub(crate) kept: Option<Duration>,
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
        audit: AuditRetention,
        events: &Events,
        sinks: Vec<String>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let schedule = &config.reset_schedule;
        Self {
            ledger,
            audit,
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
                    // The clock may have been measured, and found ahead.
                    self.next_after(now.min(self.clock.now()))
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
        // It was measured by then.
        let retention = self.retention_at(self.clock.now());
        let Pruned { periods, request_ids, events } = self.ledger.prune(&retention).await?;
        if closed + periods + request_ids + events > 0 {
            info!(closed, periods, request_ids, events, "Closed quota periods, forgot old ones");
        }
        if lead.holds().await {
            self.prune_audit_log(self.clock.now()).await;
        }
        Ok(())
    }

    /// What fails is done the next time.
    async fn prune_audit_log(&self, now: Timestamp) {
        let Some(kept) = self.audit.kept else { return };
        match self.audit.log.prune(before(now, kept)).await {
            Ok(0) => {}
            Ok(entries) => info!(entries, "Deleted {entries} old entries of the audit log"),
            Err(error) => warn!(%error, "Cannot delete old entries of the audit log"),
        }
    }

    fn retention_at(&self, now: Timestamp) -> Retention {
        Retention {
            periods_before: before(now, self.retention.periods()),
            request_ids_before: before(now, self.retention.request_ids()),
            events_before: before(now, self.retention.events()),
            sinks: self.sinks.clone(),
        }
    }
}

/// The time before which things are too old at `now`.
fn before(now: Timestamp, kept: Duration) -> Timestamp {
    let kept = u64::try_from(kept.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(kept))
}

#[cfg(test)]
mod tests;
