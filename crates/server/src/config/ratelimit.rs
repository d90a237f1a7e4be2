use std::{num::NonZeroU32, time::Duration};

use headgate::{FailMode, LeasePolicy, Limit, LimitError};
use headgate_config::{Bounded, print_sections};
use headgate_persistence::DatabaseConfig;
use headgate_ratelimit::Defaults;
use headgate_resilience::LeaseText;
use serde::Deserialize;

const YEAR_SECONDS: u64 = Limit::MAX_WINDOW.as_secs();

/// Defaults and bounds of rules.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RateLimitConfig {
    /// `ratelimit.fail_open`: admits checks while the store is down, at most the whole limit of
    /// each subject in each window.
    pub fail_open: bool,
    /// `ratelimit.default_limit`: limit where no rule matches.
    pub default_limit: Bounded<1, { u32::MAX as u64 }>,
    /// `ratelimit.default_window_seconds`: window of the default limit.
    pub default_window_seconds: Bounded<1, YEAR_SECONDS>,
    /// `ratelimit.lease`: part of a limit that a server takes in advance from Redis, for limits
    /// that set none.
    pub lease: Option<LeaseText>,
    /// `ratelimit.replicas`: replicas that share a limit while the store is down.
    pub replicas: Bounded<1, 10_000>,
    /// `ratelimit.refresh_interval_seconds`: interval of polling the database for changed rules.
    pub refresh_interval_seconds: Bounded<1, 3600>,
    /// `ratelimit.max_rules`: maximum number of rules.
    pub max_rules: Bounded<1, 1_000_000>,
}

impl RateLimitConfig {
    /// Returns the limit where no rule matches.
    pub(crate) fn defaults(&self) -> Result<Defaults, LimitError> {
        let window = Duration::from_secs(self.default_window_seconds.get());
        Ok(Defaults {
            limit: Limit::token_bucket(self.default_limit.get(), window)?,
            window_seconds: self.default_window_seconds.get() as u32,
            fail_mode: self.fail_mode(),
            lease: self.lease(),
        })
    }

    /// Returns the lease of limits that set none.
    pub(crate) fn lease(&self) -> LeasePolicy {
        self.lease.map_or(LeasePolicy::OFF, LeaseText::get)
    }

    /// Returns the fail mode of rules that set none.
    pub(crate) const fn fail_mode(&self) -> FailMode {
        if self.fail_open { FailMode::Capped } else { FailMode::Closed }
    }

    /// Returns the number of replicas that share a limit.
    pub(crate) fn replicas(&self) -> NonZeroU32 {
        NonZeroU32::new(self.replicas.get() as u32).unwrap_or(NonZeroU32::MIN)
    }

    /// Returns the interval of polling the database for changed rules.
    pub(crate) const fn refresh_interval(&self) -> Duration {
        Duration::from_secs(self.refresh_interval_seconds.get())
    }
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            fail_open: true,
            default_limit: Bounded::of::<100>(),
            default_window_seconds: Bounded::of::<60>(),
            lease: None,
            replicas: Bounded::of::<1>(),
            refresh_interval_seconds: Bounded::of::<5>(),
            max_rules: Bounded::of::<{ DatabaseConfig::DEFAULT_MAX_RULES }>(),
        }
    }
}

// === impl Print ===

print_sections! {
    RateLimitConfig {
        fail_open, default_limit, default_window_seconds, lease, replicas,
        refresh_interval_seconds, max_rules,
    }
}
