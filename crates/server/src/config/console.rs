use std::time::Duration;

use serde::Deserialize;

use super::Bounded;

/// The pages for people.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ConsoleConfig {
    /// `console.enabled`: whether there are any.
    pub enabled: bool,
    /// `console.session_ttl_seconds`: after how long somebody signs in again, whatever they do.
    pub session_ttl_seconds: Bounded<1, 604_800>,
    /// `console.idle_timeout_seconds`: after how long without a page being open.
    pub idle_timeout_seconds: Bounded<1, 604_800>,
}

impl ConsoleConfig {
    pub(crate) const fn session_ttl(&self) -> Duration {
        Duration::from_secs(self.session_ttl_seconds.get())
    }

    pub(crate) const fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_seconds.get())
    }
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            session_ttl_seconds: Bounded::of::<28_800>(),
            idle_timeout_seconds: Bounded::of::<3_600>(),
        }
    }
}
