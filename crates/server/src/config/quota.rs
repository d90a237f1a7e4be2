use std::time::Duration;

use headgate_config::{Bounded, print_sections};
use headgate_events::{ResetSchedule, RetentionConfig};
use headgate_persistence::DatabaseConfig;
use headgate_quota::usecase::IncrementUsage;
use serde::Deserialize;

/// Bounds, schedule and retention of quotas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct QuotaConfig {
    /// `quota.max_policies`: maximum number of policies.
    pub max_policies: Bounded<1, 10_000_000>,
    /// `quota.queue_capacity`: maximum number of increments that wait for the ledger.
    pub queue_capacity: Bounded<1, 1_000_000>,
    /// `quota.reconcile_interval_seconds`: interval of comparing counters with the ledger.
    pub reconcile_interval_seconds: Bounded<1, 3600>,
    /// `quota.reset_schedule`: cron schedule that closes periods and deletes old data.
    pub reset_schedule: ResetSchedule,
    /// `quota.retention`: retention of closed periods, request ids and events.
    pub retention: RetentionConfig,
}

impl QuotaConfig {
    /// Returns the interval of comparing counters with the ledger.
    pub(crate) const fn reconcile_interval(&self) -> Duration {
        Duration::from_secs(self.reconcile_interval_seconds.get())
    }
}

impl Default for QuotaConfig {
    fn default() -> Self {
        Self {
            max_policies: Bounded::of::<{ DatabaseConfig::DEFAULT_MAX_POLICIES }>(),
            queue_capacity: Bounded::of::<{ IncrementUsage::CAPACITY as u64 }>(),
            reconcile_interval_seconds: Bounded::of::<10>(),
            reset_schedule: ResetSchedule::default(),
            retention: RetentionConfig::default(),
        }
    }
}

// === impl Print ===

print_sections! {
    QuotaConfig { max_policies, queue_capacity, reconcile_interval_seconds, reset_schedule, retention }
}
