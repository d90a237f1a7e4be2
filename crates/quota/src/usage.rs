//! Usage of quotas.

use headgate::Timestamp;

use crate::{PeriodSpan, QuotaId, QuotaPeriod, QuotaPolicy, Subject};

/// Usage of a policy in one period.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaUsage {
    /// Id of the policy.
    pub quota_id: QuotaId,
    /// Subject of the policy.
    pub subject: Subject,
    /// Period of the policy.
    pub period: QuotaPeriod,
    /// The current period. `span.end` is `reset_at` in APIs.
    pub span: PeriodSpan,
    /// Limit.
    pub limit: u64,
    /// Units used.
    pub used: u64,
    /// Units that pending reservations hold besides.
    pub reserved: u64,
    /// Units left, neither used nor reserved.
    pub remaining: u64,
    /// Usage in percent of the limit with two decimals, rounded down.
    pub usage_percent: f64,
    /// `true` if all units are used.
    pub exceeded: bool,
    /// Time of the reading.
    pub retrieved_at: Timestamp,
}

/// Units of a policy in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Units used.
    pub used: u64,
    /// Units that pending reservations hold besides.
    pub reserved: u64,
    /// Limit.
    pub limit: u64,
}

/// Usage of a policy in a period, as stored in the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeriodUsage {
    /// The period.
    pub span: PeriodSpan,
    /// Limit at the last change.
    pub limit: u64,
    /// Units used.
    pub used: u64,
    /// Units that pending reservations hold besides.
    pub reserved: u64,
    /// Time of closing; `None` while the period is open.
    pub closed_at: Option<Timestamp>,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

// === impl Units ===

impl Units {
    /// Returns the units that are used or reserved.
    pub const fn taken(self) -> u64 {
        self.used.saturating_add(self.reserved)
    }

    /// Returns the units that are left.
    pub const fn remaining(self) -> u64 {
        self.limit.saturating_sub(self.taken())
    }
}

// === impl PeriodUsage ===

impl PeriodUsage {
    /// Returns the units that are used or reserved.
    pub const fn taken(&self) -> u64 {
        self.used.saturating_add(self.reserved)
    }
}

// === impl QuotaUsage ===

impl QuotaUsage {
    /// Creates the usage of a policy in `span`, where the limit is its current one or an earlier
    /// one.
    pub fn new(
        policy: &QuotaPolicy,
        span: PeriodSpan,
        units: Units,
        retrieved_at: Timestamp,
    ) -> Self {
        let Units { used, reserved, limit } = units;
        Self {
            quota_id: policy.id.clone(),
            subject: policy.spec.subject.clone(),
            period: policy.spec.period,
            span,
            limit,
            used,
            reserved,
            remaining: units.remaining(),
            usage_percent: Self::percent(used, limit),
            exceeded: Self::is_exceeded(used, limit),
            retrieved_at,
        }
    }

    /// Returns the seconds from [`retrieved_at`](Self::retrieved_at) until the period ends, rounded
    /// up; at least 1.
    pub fn seconds_until_reset(&self) -> u64 {
        self.span.end.since(self.retrieved_at).div_ceil(1_000_000).max(1)
    }

    /// Returns `true` if the limit admits `amount` more.
    pub const fn admits(used: u64, amount: u64, limit: u64) -> bool {
        used.saturating_add(amount) <= limit
    }

    /// Returns `true` if all units are used.
    pub const fn is_exceeded(used: u64, limit: u64) -> bool {
        used >= limit
    }

    /// Returns `true` if usage has reached the alert threshold, if there is one.
    pub fn is_threshold_reached(used: u64, limit: u64, percent: Option<u8>) -> bool {
        let reached = |percent| u128::from(used) * 100 >= u128::from(limit) * u128::from(percent);
        percent.is_some_and(reached)
    }

    /// Returns the usage in percent of the limit with two decimals. It is rounded down, so that it
    /// shows a threshold or 100 only once that is reached.
    pub fn percent(used: u64, limit: u64) -> f64 {
        let hundredths = u128::from(used) * 10_000 / u128::from(limit.max(1));
        hundredths as f64 / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    #[test]
    fn percentages_have_two_decimals_and_are_rounded_down() {
        assert_eq!(QuotaUsage::percent(7_523, 10_000).to_string(), "75.23");
        assert_eq!(QuotaUsage::percent(8_002, 10_000).to_string(), "80.02");
        assert_eq!(QuotaUsage::percent(99_999_999, 100_000_000).to_string(), "99.99");
        assert_eq!(QuotaUsage::percent(1, 3).to_string(), "33.33");
        assert_eq!(QuotaUsage::percent(0, 1).to_string(), "0");
        assert_eq!(QuotaUsage::percent(1 << 53, 1 << 53).to_string(), "100");
    }

    #[test]
    fn a_quota_is_exceeded_when_nothing_is_left() {
        assert!(!QuotaUsage::is_exceeded(9, 10) && QuotaUsage::is_exceeded(10, 10));
        assert!(QuotaUsage::is_exceeded(11, 10), "the limit was lowered");
        assert!(QuotaUsage::admits(9, 1, 10) && !QuotaUsage::admits(9, 2, 10));
        assert!(!QuotaUsage::admits(u64::MAX, 1, 10));
    }

    #[test]
    fn seconds_until_the_reset_are_rounded_up_and_at_least_one() {
        let draft = Draft {
            name: "n".to_owned().into(),
            subject_type: "user".to_owned().into(),
            subject_id: "u".to_owned().into(),
            limit: 10.into(),
            period: "daily".to_owned().into(),
            ..Draft::default()
        };
        let start = Timestamp::from_micros(1_771_804_800_000_000);
        let (id, spec) = ("quota_1".parse().unwrap(), draft.validate(None).unwrap());
        let policy = QuotaPolicy { id, spec, created_at: start, updated_at: start };
        let span = policy.spec.span(start).unwrap();
        let units = |used| Units { used, reserved: 0, limit: 10 };
        let seconds =
            |at| QuotaUsage::new(&policy, span.clone(), units(3), at).seconds_until_reset();
        assert_eq!(seconds(start), 86_400);
        assert_eq!(seconds(start.plus(1)), 86_400);
        assert_eq!(seconds(start.plus(1_000_000)), 86_399);
        assert_eq!(seconds(span.end), 1, "a client that waits 0 s would ask again at once");

        let usage = QuotaUsage::new(&policy, span.clone(), units(3), start);
        assert_eq!((usage.used, usage.remaining, usage.exceeded), (3, 7, false));
        assert_eq!(usage.usage_percent.to_string(), "30");
        let over = QuotaUsage::new(&policy, span.clone(), units(11), start);
        assert_eq!((over.remaining, over.exceeded), (0, true), "the limit was lowered");
        let reserved = Units { reserved: 7, ..units(3) };
        let held = QuotaUsage::new(&policy, span.clone(), reserved, start);
        assert_eq!((held.remaining, held.exceeded), (0, false), "reserved units may come back");
        let (used, closed_at) = (3, None);
        let stored =
            PeriodUsage { span, limit: 10, used, reserved: 7, closed_at, updated_at: start };
        assert_eq!(stored.taken(), 10);
    }

    #[test]
    fn a_threshold_is_reached_exactly() {
        let reached = |used, percent| QuotaUsage::is_threshold_reached(used, 10, percent);
        assert!(!reached(7, Some(80)) && reached(8, Some(80)) && reached(10, Some(80)));
        assert!(reached(1, Some(0)) && !reached(9, Some(100)) && reached(10, Some(100)));
        assert!(!reached(10, None), "no threshold is set");
    }
}
