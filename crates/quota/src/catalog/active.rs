//! A policy made ready to be counted by.

use std::sync::Arc;

use arc_swap::ArcSwap;
use headgate::{Cost, Limit, LimitError, Timestamp};

use crate::{QuotaPolicy, RepositoryError, Span, Spans};

/// A policy with everything that an increment needs worked out in advance.
#[derive(Debug)]
pub struct ActivePolicy {
    policy: QuotaPolicy,
    largest: Limit,
    spans: Spans,
    /// The period that was asked for last, which is almost always the one asked for next.
    latest: ArcSwap<Span>,
}

impl ActivePolicy {
    /// The policy in force.
    pub fn new(policy: QuotaPolicy) -> Result<Self, RepositoryError> {
        let odd = |error: LimitError| RepositoryError::Corrupt(format!("{}: {error}", policy.id));
        let spec = &policy.spec;
        let (period, zone) = (spec.period.calendar(), spec.time_zone.as_deref().unwrap_or("UTC"));
        let largest = Limit::calendar(Cost::MAX, period, zone).map_err(odd)?;
        let spans = spec.spans().map_err(odd)?;
        let latest = ArcSwap::from_pointee(spans.at(policy.updated_at));
        Ok(Self { policy, largest, spans, latest })
    }

    /// The policy as it was written.
    pub const fn policy(&self) -> &QuotaPolicy {
        &self.policy
    }

    /// Its calendar with room for `most`.
    pub(crate) fn limit_of(&self, most: u64) -> Result<Limit, LimitError> {
        let spec = &self.policy.spec;
        Limit::calendar(most, spec.period.calendar(), spec.time_zone.as_deref().unwrap_or("UTC"))
    }

    /// Its calendar with room for everything, for what is counted already.
    pub(crate) const fn largest(&self) -> &Limit {
        &self.largest
    }

    /// The day or month that `moment` is in.
    pub fn span(&self, moment: Timestamp) -> Arc<Span> {
        let latest = self.latest.load_full();
        if latest.contains(moment) {
            return latest;
        }
        let span = Arc::new(self.spans.at(moment));
        self.latest.store(Arc::clone(&span));
        span
    }
}
