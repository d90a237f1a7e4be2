use std::time::Duration;

use headgate_config::{Bounded, Print, Printed, print_sections};
use serde::Deserialize;

use crate::cron::{Cron, CronError};

/// Schedule of closing quota periods: the section `quota.reset_schedule`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ResetSchedule {
    /// `quota.reset_schedule.daily`: schedule of closing days.
    pub daily: Schedule,
    /// `quota.reset_schedule.monthly`: schedule of closing months.
    pub monthly: Schedule,
}

/// A cron expression.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Schedule(Cron);

/// Retention of data: the section `quota.retention`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RetentionConfig {
    /// `quota.retention.periods_days`: usage of closed periods.
    pub periods_days: Bounded<1, 3650>,
    /// `quota.retention.request_ids_days`: request ids, from the end of their period.
    pub request_ids_days: Bounded<1, 3650>,
    /// `quota.retention.events_days`: events that every sink has.
    pub events_days: Bounded<1, 3650>,
}

// === impl ResetSchedule ===

impl Default for ResetSchedule {
    fn default() -> Self {
        Self { daily: Schedule(Cron::daily()), monthly: Schedule(Cron::monthly()) }
    }
}

// === impl Schedule ===

impl Schedule {
    /// Returns the cron expression.
    pub(crate) const fn get(&self) -> &Cron {
        &self.0
    }
}

impl TryFrom<String> for Schedule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: CronError| {
            format!("expected a cron expression such as \"0 0 * * *\": {error}")
        })
    }
}

// === impl RetentionConfig ===

impl RetentionConfig {
    const DAY: u64 = 24 * 60 * 60;

    pub(crate) const fn periods(&self) -> Duration {
        Duration::from_secs(self.periods_days.get() * Self::DAY)
    }

    pub(crate) const fn request_ids(&self) -> Duration {
        Duration::from_secs(self.request_ids_days.get() * Self::DAY)
    }

    pub(crate) const fn events(&self) -> Duration {
        Duration::from_secs(self.events_days.get() * Self::DAY)
    }
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            periods_days: Bounded::of::<400>(),
            request_ids_days: Bounded::of::<7>(),
            events_days: Bounded::of::<30>(),
        }
    }
}

// === impl Print ===

print_sections! {
    ResetSchedule { daily, monthly }
    RetentionConfig { periods_days, request_ids_days, events_days }
}

impl Print for Schedule {
    fn print(&self) -> Printed {
        Printed::scalar(self.get().to_string())
    }
}
