//! Closes quota periods that are over and deletes old data, on schedule.

use std::{sync::Arc, time::Duration};

use headgate::{Clock, Timestamp};
use headgate_quota::{Pruned, QuotaEventLog, QuotaLedger, RepositoryError, Retention};
use headgate_ratelimit::AuditLog;
use tokio::time;
use tracing::{debug, info, warn};

use crate::{Events, EventsConfig, RetentionConfig, Shutdown, cron::Cron};

/// Runs at the scheduled times, and at start to make up for missed ones. Current periods are not
/// touched: it does not matter how often, how late or on how many replicas it runs.
pub(crate) struct Scheduler {
    ledger: Arc<dyn QuotaLedger>,
    audit: AuditRetention,
    log: Arc<dyn QuotaEventLog>,
    schedules: [Cron; 2],
    retention: RetentionConfig,
    /// Sinks that must have an event before it is deleted.
    sinks: Vec<String>,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
}

/// The audit log and its retention; `None` keeps entries forever.
pub(crate) struct AuditRetention {
    pub(crate) log: Arc<dyn AuditLog>,
    pub(crate) kept: Option<Duration>,
}

/// Name of the lock: one replica at a time.
const TASK: &str = "quota-housekeeping";

/// Interval between two reads of the clock, which can jump while a machine sleeps.
const CLOCK_INTERVAL: Duration = Duration::from_secs(30);

/// Delay after a failure; each further one doubles it, up to [`MAX_RETRY_DELAY`].
const RETRY_DELAY: Duration = Duration::from_secs(10);

const MAX_RETRY_DELAY: Duration = Duration::from_mins(10);

impl Scheduler {
    pub(crate) fn new(
        config: EventsConfig<'_>,
        ledger: Arc<dyn QuotaLedger>,
        audit: AuditRetention,
        events: &Events,
        sinks: Vec<String>,
        clock: Arc<dyn Clock>,
        shutdown: Shutdown,
    ) -> Self {
        let schedule = config.reset_schedule;
        Self {
            ledger,
            audit,
            log: Arc::clone(events.log()),
            schedules: [schedule.daily.get().clone(), schedule.monthly.get().clone()],
            retention: config.retention.clone(),
            sinks,
            clock,
            shutdown,
        }
    }

    /// Runs until shutdown.
    pub(crate) async fn run(mut self) {
        let mut delay = RETRY_DELAY;
        let mut due = self.clock.now();
        while self.wait_until(due).await {
            let now = self.clock.now();
            due = match self.run_once(now).await {
                Ok(()) => {
                    delay = RETRY_DELAY;
                    // The ledger may have corrected a clock that was ahead.
                    self.next_after(now.min(self.clock.now()))
                }
                Err(error) => {
                    warn!(
                        %error,
                        "failed to close quota periods and delete old data; retrying in {} s",
                        delay.as_secs()
                    );
                    let retry = now + delay;
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                    retry
                }
            };
        }
    }

    /// Returns the next time of either schedule.
    fn next_after(&self, now: Timestamp) -> Timestamp {
        let next = self.schedules.iter().filter_map(|schedule| schedule.next_after(now)).min();
        next.unwrap_or(now + Duration::from_secs(24 * 60 * 60))
    }

    /// Waits until `due`; `false` on shutdown.
    async fn wait_until(&mut self, due: Timestamp) -> bool {
        loop {
            let left = Duration::from_micros(due.since(self.clock.now()));
            if self.shutdown.is_signalled() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            tokio::select! {
                () = time::sleep(left.min(CLOCK_INTERVAL)) => {}
                () = self.shutdown.signalled() => {}
            }
        }
    }

    /// Runs all steps, even if one fails; returns the first error.
    async fn run_once(&self, now: Timestamp) -> Result<(), RepositoryError> {
        let Some(mut lead) = self.log.lead(TASK).await? else {
            debug!("another replica closes quota periods");
            return Ok(());
        };
        let closed = self.ledger.close_periods(now).await;
        if let Ok(closed @ 1..) = closed {
            info!(closed, "closed {closed} quota periods");
        }
        if !lead.holds().await {
            return closed.map(drop);
        }
        // The ledger may have corrected the clock meanwhile.
        let pruned = self.ledger.prune(&self.retention_at(self.clock.now())).await;
        if let Ok(Pruned { periods, request_ids, events }) = pruned
            && periods + request_ids + events > 0
        {
            info!(periods, request_ids, events, "deleted old data of quotas");
        }
        if lead.holds().await {
            self.prune_audit_log(self.clock.now()).await;
        }
        closed.and(pruned).map(drop)
    }

    /// Deletes old entries of the audit log; after a failure, the next run deletes them.
    async fn prune_audit_log(&self, now: Timestamp) {
        let Some(kept) = self.audit.kept else { return };
        match self.audit.log.prune(before(now, kept)).await {
            Ok(0) => {}
            Ok(entries) => info!(entries, "deleted {entries} old entries of the audit log"),
            Err(error) => warn!(%error, "failed to delete old entries of the audit log"),
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

/// Returns the time `kept` before `now`.
pub(crate) fn before(now: Timestamp, kept: Duration) -> Timestamp {
    let kept = u64::try_from(kept.as_micros()).unwrap_or(u64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(kept))
}

#[cfg(test)]
mod tests;
