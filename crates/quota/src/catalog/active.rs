//! Policies prepared for increments.

use std::sync::Arc;

use arc_swap::ArcSwap;
use headgate::{Cost, Limit, LimitError, Timestamp};

use crate::{PeriodCalendar, PeriodSpan, QuotaPolicy, RepositoryError};

/// A policy with everything that an increment needs computed in advance.
#[derive(Debug)]
pub struct ActivePolicy {
    policy: QuotaPolicy,
    largest: Limit,
    calendar: PeriodCalendar,
    /// The period of the last call, which is almost always that of the next.
    latest: ArcSwap<PeriodSpan>,
}

impl ActivePolicy {
    /// Prepares a stored policy.
    pub fn new(policy: QuotaPolicy) -> Result<Self, RepositoryError> {
        let invalid =
            |error: LimitError| RepositoryError::Corrupt(format!("{}: {error}", policy.id));
        let spec = &policy.spec;
        let (period, zone) = (spec.period.calendar(), spec.time_zone.as_deref().unwrap_or("UTC"));
        let largest = Limit::calendar(Cost::MAX, period, zone).map_err(invalid)?;
        let calendar = spec.calendar().map_err(invalid)?;
        let latest = ArcSwap::from_pointee(calendar.at(policy.updated_at));
        Ok(Self { policy, largest, calendar, latest })
    }

    /// Returns the stored policy.
    pub const fn policy(&self) -> &QuotaPolicy {
        &self.policy
    }

    /// Returns a calendar limit of `most` units.
    pub(crate) fn limit_of(&self, most: u64) -> Result<Limit, LimitError> {
        let spec = &self.policy.spec;
        Limit::calendar(most, spec.period.calendar(), spec.time_zone.as_deref().unwrap_or("UTC"))
    }

    /// Returns a calendar limit of the maximum, for reading counters.
    pub(crate) const fn largest(&self) -> &Limit {
        &self.largest
    }

    /// Returns the period that contains `moment`.
    pub fn span(&self, moment: Timestamp) -> Arc<PeriodSpan> {
        let latest = self.latest.load_full();
        if latest.contains(moment) {
            return latest;
        }
        let span = Arc::new(self.calendar.at(moment));
        self.latest.store(Arc::clone(&span));
        span
    }
}
