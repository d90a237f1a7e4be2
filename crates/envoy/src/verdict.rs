use std::{cmp::Reverse, sync::Arc, time::Duration};

use crate::DescriptorRule;

/// The answer to a request.
#[derive(Debug)]
pub struct EnvoyVerdict {
    /// True if the request is denied.
    pub over_limit: bool,
    /// One status per descriptor, in the order of the request: that of the limit which denies it, or
    /// else has the least left.
    pub statuses: Vec<DescriptorStatus>,
    /// The other limits that apply, each with the index of its descriptor. Only rules over
    /// attributes add any.
    pub also: Vec<(usize, DescriptorStatus)>,
}

/// The answer for one descriptor.
#[derive(Debug)]
pub struct DescriptorStatus {
    /// The rule that it matched, if any.
    pub rule: Option<Arc<DescriptorRule>>,
    /// True if its limit denies it.
    pub over_limit: bool,
    /// Units left.
    pub remaining: u64,
    /// Time until all units are back.
    pub reset_after: Duration,
    /// Time until the same request is admitted; `None` if it never is.
    pub retry_after: Option<Duration>,
    /// True if it was decided without asking the store; `remaining` is a lower bound then.
    pub leased: bool,
}

// === impl EnvoyVerdict ===

impl EnvoyVerdict {
    /// Seconds until the same request is admitted, rounded up, at least 1; `None` if it never is,
    /// or if it is not denied.
    pub fn retry_after_secs(&self) -> Option<u64> {
        if !self.over_limit {
            return None;
        }
        let denied = self.all().map(|(_, status)| status).filter(|status| status.over_limit);
        let waits = denied.map(|status| status.retry_after).collect::<Option<Vec<_>>>()?;
        Some(ceil_secs(waits.into_iter().max()?).max(1))
    }

    /// Returns true if at least one descriptor was decided without asking the store.
    pub fn is_leased(&self) -> bool {
        self.all().any(|(_, status)| status.leased)
    }

    /// Returns the statuses of all limits, each with the index of its descriptor.
    pub fn all(&self) -> impl Iterator<Item = (usize, &DescriptorStatus)> + Clone {
        let also = self.also.iter().map(|(index, status)| (*index, status));
        self.statuses.iter().enumerate().chain(also)
    }

    /// The limited descriptor with the least left, for headers that have room for one.
    pub fn tightest(&self) -> Option<&DescriptorStatus> {
        let is_limited = |status: &&DescriptorStatus| {
            status.rule.as_ref().is_some_and(|rule| rule.rate().is_some())
        };
        let limited = self.statuses.iter().filter(is_limited);
        limited.min_by_key(|status| (!status.over_limit, status.remaining))
    }
}

// === impl DescriptorStatus ===

impl DescriptorStatus {
    /// Status of a descriptor without a limit.
    pub(crate) const fn unlimited(remaining: u64) -> Self {
        let reset_after = Duration::ZERO;
        Self {
            rule: None,
            over_limit: false,
            remaining,
            reset_after,
            retry_after: None,
            leased: false,
        }
    }

    /// Returns true if it denies the request, alone or together with others.
    pub(crate) fn denies(&self) -> bool {
        self.over_limit && !self.rule.as_ref().is_some_and(|rule| rule.shadow_mode)
    }

    /// Returns true if it denies the request only together with all other limits in quota mode.
    pub(crate) fn is_quota(&self, all_in_quota_mode: bool) -> bool {
        match &self.rule {
            Some(rule) => (rule.quota_mode || all_in_quota_mode) && rule.rate().is_some(),
            None => all_in_quota_mode,
        }
    }

    /// Orders the limits of one descriptor; the greatest one is shown.
    pub(crate) fn urgency(&self, all_in_quota_mode: bool) -> impl Ord + use<> {
        let is_limited = self.rule.as_ref().is_some_and(|rule| rule.rate().is_some());
        let denies_alone = self.denies() && !self.is_quota(all_in_quota_mode);
        (is_limited, denies_alone, self.denies(), self.over_limit, Reverse(self.remaining))
    }

    /// Seconds until all units are back, rounded up.
    pub const fn reset_after_secs(&self) -> u64 {
        ceil_secs(self.reset_after)
    }
}

const fn ceil_secs(duration: Duration) -> u64 {
    duration.as_secs() + (duration.subsec_nanos() > 0) as u64
}
