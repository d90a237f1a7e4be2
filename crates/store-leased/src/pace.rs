//! The number of units that are worth taking in advance.

use crate::refill::Refill;

/// What a subject asks for here, and how many units the store had left.
///
/// A call costs a round trip; a unit that is held and not used is missing elsewhere, and has to be
/// given back. The balance is the economic order quantity, `sqrt(2 * demand * call / stranding)`.
/// Stranding a unit is the dearer the fewer are left: to hold back all of them for a whole hold
/// costs as much as [`SCARCITY`](Self::SCARCITY) calls. More than the subject uses until the rest
/// goes back is never worth it.
///
/// Safety does not depend on any of this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Steady time of the last call, in microseconds.
    since: u64,
    asked: u64,
    /// The last expectation of what is asked for in a hold.
    expected: u64,
    /// Units that the store had, as far as is known.
    stock: u64,
}

impl Pace {
    /// Shortest time from which a pace is inferred, in microseconds.
    const MIN_ELAPSED: u64 = 1_000;

    /// Units asked for in a hold from which on it is worth taking any in advance: a call that grants
    /// costs a store more than one that does not, and what is not used has to go back.
    const MIN_EXPECTED: u64 = 2;

    /// Calls that it is worth to not hold back everything that is left.
    const SCARCITY: u64 = 4;

    /// The pace of a subject that was seen before at `since`.
    pub(crate) const fn new(since: u64) -> Self {
        Self { since, asked: 1, expected: 0, stock: u64::MAX }
    }

    /// Counts units that were asked for, admitted or not.
    pub(crate) const fn count(&mut self, units: u64) {
        self.asked = self.asked.saturating_add(units);
    }

    /// Learns how many units the store had when it granted some.
    pub(crate) const fn admitted(&mut self, stock: u64) {
        self.stock = stock;
    }

    /// Learns that the store had too few.
    pub(crate) fn denied(&mut self) {
        self.stock = (self.stock / 2).max(1);
    }

    /// Steady time of the last call.
    pub(crate) const fn last_call(&self) -> u64 {
        self.since
    }

    /// The units that are worth taking for a grant that ends after `length` microseconds, out of a
    /// `hold`. Starts to measure anew, because the store is asked now.
    pub(crate) fn order(&mut self, now: u64, hold: u64, length: u64) -> u64 {
        let is_first = self.expected == 0;
        let expected = self.expect(now, hold);
        *self = Self { since: now, asked: 0, expected, ..*self };
        // Among many subjects, some come back soon by chance: once tells nothing.
        if is_first || expected < Self::MIN_EXPECTED {
            return 0;
        }
        let economic = u128::from(expected) * 2 * u128::from(self.stock);
        let economic = u64::try_from((economic / u128::from(Self::SCARCITY)).isqrt());
        let demand = self.demand(length, hold);
        // Demand varies by about its square root.
        let demand = demand.saturating_add(demand.isqrt());
        economic.unwrap_or(u64::MAX).max(1).min(demand)
    }

    /// What is probably asked for in a grant that ends after `length`, until the rest goes back, or
    /// until more is asked for before that.
    fn demand(&self, length: u64, hold: u64) -> u64 {
        // Cut short by the end of its window: it is the last one.
        if length <= hold / 2 {
            return self.expected_within(length, hold);
        }
        let until_refill = self.expected_within(length - length / 4, hold);
        if until_refill >= Refill::MIN_UNITS {
            return until_refill;
        }
        self.expected_within(length - length / 8, hold)
    }

    /// What is probably asked for in the next `micros` microseconds.
    pub(crate) fn expected_within(&self, micros: u64, hold: u64) -> u64 {
        let scaled = u128::from(self.expected) * u128::from(micros) / u128::from(hold.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// What is asked for in a hold, by what was asked for since the last call. It grows to a little
    /// more than twice the last expectation at most, so that a short burst strands little, and
    /// shrinks to half of it, so that a short pause does not forget a busy subject.
    fn expect(&self, now: u64, hold: u64) -> u64 {
        let elapsed = now.saturating_sub(self.since).max(Self::MIN_ELAPSED);
        let scaled = u128::from(self.asked) * u128::from(hold) / u128::from(elapsed);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled.clamp(self.expected / 2, self.expected.saturating_mul(2).saturating_add(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: u64 = 200_000;

    fn busy(expected: u64) -> Pace {
        Pace { asked: 0, expected, ..Pace::new(0) }
    }

    #[test]
    fn a_subject_that_comes_back_rarely_is_not_worth_a_unit() {
        assert_eq!(Pace::new(0).order(HOLD + 1, HOLD, HOLD), 0, "less than one in a hold");
        assert_eq!(Pace::new(0).order(HOLD, HOLD, HOLD), 0, "one in a hold");
    }

    #[test]
    fn a_subject_that_comes_back_soon_once_is_not_worth_a_unit_yet() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.order(HOLD / 2, HOLD, HOLD), 0);
        pace.count(1);
        assert_eq!(pace.order(HOLD, HOLD, HOLD), 2);
    }

    #[test]
    fn an_order_grows_with_the_demand_and_doubles_at_most() {
        let mut pace = Pace::new(0);
        let orders: Vec<u64> = (1..=5)
            .map(|call| {
                pace.count(1_000);
                pace.order(call * 1_000, HOLD, HOLD)
            })
            .collect();
        // 2, 6, 14, 30 and 62 are expected; the first expectation is not trusted.
        assert_eq!(orders, [0, 5 + 2, 12 + 3, 26 + 5, 54 + 7]);
    }

    #[test]
    fn an_order_is_for_most_of_the_grant_and_for_all_of_a_windows_last_one() {
        let order = |length| busy(100).order(HOLD, HOLD, length);
        // Nothing was asked for meanwhile: 50 are expected.
        assert_eq!(order(HOLD), 43 + 6);
        assert_eq!(order(HOLD * 3 / 5), 26 + 5);
        assert_eq!(order(HOLD / 2), 25 + 5);
        assert_eq!(order(HOLD / 100), 0);
    }

    #[test]
    fn a_busy_subject_is_not_forgotten_in_a_short_pause() {
        let mut pace = busy(100);
        assert_eq!(pace.order(10 * HOLD, HOLD, HOLD), 43 + 6);
        assert_eq!(pace.order(20 * HOLD, HOLD, HOLD), 21 + 4);
    }

    #[test]
    fn the_scarcer_the_units_the_smaller_the_order() {
        let order = |stock| {
            let mut pace = busy(1_000);
            pace.admitted(stock);
            pace.count(1_000);
            pace.order(HOLD, HOLD, HOLD)
        };
        assert_eq!(order(1_000_000), 750 + 27);
        assert_eq!(order(1_000), 707);
        assert_eq!(order(10), 70);
        assert_eq!(order(0), 1);
        let mut pace = busy(1_000);
        pace.admitted(1_000);
        (0..20).for_each(|_| pace.denied());
        pace.count(1_000);
        assert_eq!(pace.order(HOLD, HOLD, HOLD), 22, "the store may have some again");
    }

    #[test]
    fn a_denial_means_that_half_the_units_are_left() {
        let mut pace = busy(1_000);
        pace.admitted(1_000);
        pace.denied();
        pace.count(1_000);
        assert_eq!(pace.order(HOLD, HOLD, HOLD), 500);
    }
}
