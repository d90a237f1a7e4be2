use std::time::Duration;

use headgate::{FailMode, Limit, LimitError};
use serde::Deserialize;

use super::Bounded;

const YEAR_SECONDS: u64 = Limit::MAX_WINDOW.as_secs();

/// What is allowed.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct RateLimitConfig {
    /// `ratelimit.fail_open`: whether checks are admitted while the store cannot decide.
    pub fail_open: bool,
    /// `ratelimit.default_limit`: how many checks are allowed where no rule says otherwise.
    pub default_limit: Bounded<1, { u32::MAX as u64 }>,
    /// `ratelimit.default_window_seconds`: in how long a time.
    pub default_window_seconds: Bounded<1, YEAR_SECONDS>,
}

impl RateLimitConfig {
    /// The default rule's limit.
    pub(crate) fn default_rule(&self) -> Result<Limit, LimitError> {
        let window = Duration::from_secs(self.default_window_seconds.get());
        Limit::token_bucket(self.default_limit.get(), window)
    }

    /// What answers while the store cannot.
    pub(crate) const fn fail_mode(&self) -> FailMode {
        if self.fail_open { FailMode::Open } else { FailMode::Closed }
    }
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            fail_open: true,
            default_limit: Bounded::of::<100>(),
            default_window_seconds: Bounded::of::<60>(),
        }
    }
}
