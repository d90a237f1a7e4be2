//! What usage means: whether a quota is exceeded, and whether an alert is due.

/// Says what usage means.
#[derive(Clone, Copy, Debug)]
pub struct QuotaDomainService;

impl QuotaDomainService {
    /// Whether `amount` more fits.
    pub const fn admits(used: u64, amount: u64, limit: u64) -> bool {
        used.saturating_add(amount) <= limit
    }

    /// Whether nothing is left.
    pub const fn is_exceeded(used: u64, limit: u64) -> bool {
        used >= limit
    }

    /// Whether usage has reached the threshold, if there is one.
    pub fn is_threshold_reached(used: u64, limit: u64, percent: Option<u8>) -> bool {
        let reached = |percent| u128::from(used) * 100 >= u128::from(limit) * u128::from(percent);
        percent.is_some_and(reached)
    }

    /// How much of the limit is used, in percent with two decimals: rounded down, so that it
    /// shows a threshold or 100 only when that is reached.
    pub fn usage_percent(used: u64, limit: u64) -> f64 {
        let hundredths = u128::from(used) * 10_000 / u128::from(limit.max(1));
        hundredths as f64 / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::QuotaDomainService as Service;

    #[test]
    fn percentages_have_two_decimals_and_are_rounded_down() {
        assert_eq!(Service::usage_percent(7_523, 10_000).to_string(), "75.23");
        assert_eq!(Service::usage_percent(8_002, 10_000).to_string(), "80.02");
        assert_eq!(Service::usage_percent(99_999_999, 100_000_000).to_string(), "99.99");
        assert_eq!(Service::usage_percent(1, 3).to_string(), "33.33");
        assert_eq!(Service::usage_percent(0, 1).to_string(), "0");
        assert_eq!(Service::usage_percent(1 << 53, 1 << 53).to_string(), "100");
    }

    #[test]
    fn a_quota_is_exceeded_when_nothing_is_left() {
        assert!(!Service::is_exceeded(9, 10) && Service::is_exceeded(10, 10));
        assert!(Service::is_exceeded(11, 10), "the limit was lowered");
        assert!(Service::admits(9, 1, 10) && !Service::admits(9, 2, 10));
        assert!(!Service::admits(u64::MAX, 1, 10));
    }

    #[test]
    fn a_threshold_is_reached_exactly() {
        let reached = |used, percent| Service::is_threshold_reached(used, 10, percent);
        assert!(!reached(7, Some(80)) && reached(8, Some(80)) && reached(10, Some(80)));
        assert!(reached(1, Some(0)) && !reached(9, Some(100)) && reached(10, Some(100)));
        assert!(!reached(10, None), "nobody asked for one");
    }
}
