use std::time::Duration;

use headgate_config::{Bounded, print_sections};
use serde::Deserialize;

/// Retention of the audit log.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct AuditConfig {
    /// `audit.retention_days`: days that entries are kept; 0 keeps them forever.
    pub retention_days: Bounded<0, 36_500>,
}

impl AuditConfig {
    const DAY: u64 = 24 * 60 * 60;

    /// Returns the retention, or `None` if entries are kept forever.
    pub(crate) fn retention(self) -> Option<Duration> {
        match self.retention_days.get() {
            0 => None,
            days => Some(Duration::from_secs(days * Self::DAY)),
        }
    }
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { retention_days: Bounded::of::<0>() }
    }
}

// === impl Print ===

print_sections! {
    AuditConfig { retention_days }
}
