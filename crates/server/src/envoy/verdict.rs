use std::{sync::Arc, time::Duration};

use super::rule::Rule;

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) over: bool,
    /// One for every descriptor, in their order.
    pub(crate) statuses: Vec<Status>,
}

/// How one descriptor stands.
#[derive(Debug)]
pub(crate) struct Status {
    /// What its limit is, if it has one.
    pub(crate) rule: Option<Arc<Rule>>,
    /// Whether it denies.
    pub(crate) over: bool,
    pub(crate) remaining: u64,
    pub(crate) reset_after: Duration,
    /// When the same request has room; nothing where it never has.
    pub(crate) retry_after: Option<Duration>,
}

// === impl Verdict ===

impl Verdict {
    /// Whole seconds until the same request is admitted, if it ever is: rounded up, at least 1.
    pub(crate) fn retry_after_secs(&self) -> Option<u64> {
        if !self.over {
            return None;
        }
        let waits = self.statuses.iter().filter(|status| status.over).map(|it| it.retry_after);
        let longest = waits.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        Some(ceil_secs(longest).max(1))
    }

    /// The limited descriptor with the least left, for headers that have room for one.
    pub(crate) fn tightest(&self) -> Option<&Status> {
        let limited = self
            .statuses
            .iter()
            .filter(|it| it.rule.as_ref().is_some_and(|rule| rule.rate().is_some()));
        limited.min_by_key(|status| (!status.over, status.remaining))
    }
}

impl Status {
    /// Of a descriptor that nothing limits.
    pub(super) const fn free(remaining: u64) -> Self {
        Self { rule: None, over: false, remaining, reset_after: Duration::ZERO, retry_after: None }
    }

    /// Whole seconds until everything is back, rounded up.
    pub(crate) const fn reset_after_secs(&self) -> u64 {
        ceil_secs(self.reset_after)
    }
}

const fn ceil_secs(duration: Duration) -> u64 {
    duration.as_secs() + (duration.subsec_nanos() > 0) as u64
}
