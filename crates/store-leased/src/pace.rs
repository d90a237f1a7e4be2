//! The number of units that are worth taking in advance.

/// What a subject has used here since the last call to the store.
///
/// A grant ends after the hold, so more than the subject uses in that time is stranded, and less
/// means another call. The prediction is what it has used since the last call, scaled to the hold,
/// and at most a little more than twice the last one, so that a short burst strands little. Safety
/// does not depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Steady time of the last call, in microseconds.
    since: u64,
    used: u64,
    /// The last prediction.
    last: u64,
}

impl Pace {
    /// Shortest time from which a pace is inferred, in microseconds.
    const MIN_ELAPSED: u64 = 1_000;

    /// The pace of a subject that is seen for the first time.
    pub(crate) const fn new(now: u64) -> Self {
        Self { since: now, used: 0, last: 0 }
    }

    /// Counts units that were handed out or taken from the store.
    pub(crate) const fn count(&mut self, units: u64) {
        self.used = self.used.saturating_add(units);
    }

    /// Predicts the units that are used in the next `hold` microseconds, and starts to measure
    /// anew, because the store is asked now.
    pub(crate) fn predict(&mut self, now: u64, hold: u64) -> u64 {
        let elapsed = now.saturating_sub(self.since).max(Self::MIN_ELAPSED);
        let scaled = u128::from(self.used) * u128::from(hold) / u128::from(elapsed);
        let most = self.last.saturating_mul(2).saturating_add(1);
        let last = u64::try_from(scaled).unwrap_or(u64::MAX).min(most);
        *self = Self { since: now, used: 0, last };
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_that_comes_back_rarely_is_not_worth_a_unit() {
        let predict = |elapsed| {
            let mut pace = Pace { last: 100, ..Pace::new(0) };
            pace.count(1);
            pace.predict(elapsed, 200_000)
        };
        assert_eq!(Pace::new(0).predict(5_000, 200_000), 0, "seen once");
        assert_eq!(predict(200_001), 0, "less than one in a hold");
        assert_eq!(predict(200_000), 1);
        assert_eq!(predict(20_000), 10);
        assert_eq!(predict(1), 200, "too short to tell");
    }

    #[test]
    fn a_prediction_doubles_at_most() {
        let mut pace = Pace::new(0);
        let predictions: Vec<u64> = (1..=5)
            .map(|call| {
                pace.count(1_000);
                pace.predict(call * 1_000, 200_000)
            })
            .collect();
        assert_eq!(predictions, [1, 3, 7, 15, 31]);
    }
}
