use std::{fmt, time::Duration};

use headgate_config::{Bounded, Print, Printed, print_sections, quoted};
use headgate_events::{ResetSchedule, RetentionConfig};
use headgate_quota::{StoreCounter, usecase::IncrementUsage};
use serde::Deserialize;

/// Bounds, schedule and retention of quotas.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct QuotaConfig {
    /// `quota.queue_capacity`: maximum number of increments that wait for the ledger.
    pub queue_capacity: Bounded<1, 1_000_000>,
    /// `quota.reconcile_interval_seconds`: interval of comparing counters with the ledger.
    pub reconcile_interval_seconds: Bounded<1, 3600>,
    /// `quota.reset_schedule`: cron schedule that closes periods and deletes old data.
    pub reset_schedule: ResetSchedule,
    /// `quota.retention`: retention of closed periods, request ids and events.
    pub retention: RetentionConfig,
}

/// Prefix of the keys of quota counters.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct KeyPrefix(String);

impl QuotaConfig {
    /// Returns the interval of comparing counters with the ledger.
    pub(crate) const fn reconcile_interval(&self) -> Duration {
        Duration::from_secs(self.reconcile_interval_seconds.get())
    }
}

impl Default for QuotaConfig {
    fn default() -> Self {
        Self {
            queue_capacity: Bounded::of::<{ IncrementUsage::CAPACITY as u64 }>(),
            reconcile_interval_seconds: Bounded::of::<10>(),
            reset_schedule: ResetSchedule::default(),
            retention: RetentionConfig::default(),
        }
    }
}

// === impl KeyPrefix ===

impl KeyPrefix {
    const MAX_BYTES: usize = 64;

    /// Returns the prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for KeyPrefix {
    fn default() -> Self {
        Self(StoreCounter::PREFIX.to_owned())
    }
}

impl TryFrom<String> for KeyPrefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        // Braces are a hash tag in Redis Cluster.
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}');
        if (1..=Self::MAX_BYTES).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(Self(text));
        }
        let max = Self::MAX_BYTES;
        Err(format!(
            "expected 1 to {max} visible ASCII characters other than braces, such as quota:, got {}",
            quoted(&text)
        ))
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// === impl Print ===

print_sections! {
    QuotaConfig { queue_capacity, reconcile_interval_seconds, reset_schedule, retention }
}

impl Print for KeyPrefix {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}
