//! The time at which more units are available.

use std::time::Duration;

use super::{Limit, Parameters};
use crate::{Decision, algorithm::Bucket};

impl Limit {
    /// Time after `decision`, which this limit made, until more units are available than were left;
    /// `None` if all are.
    ///
    /// After a denial, this is the time until the same cost is admitted. A bucket has more when its
    /// next unit returns, a fixed or calendar window when the next one begins, and a sliding window
    /// at this time at the latest.
    pub fn more_after(&self, decision: &Decision) -> Option<Duration> {
        if !decision.allowed {
            return Some(decision.retry_after);
        }
        let taken = decision.limit.saturating_sub(decision.remaining);
        if taken == 0 {
            return None;
        }
        match self.parameters() {
            // During an outage of the store, only a share of the limit may apply.
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket)
                if decision.limit == self.capacity() =>
            {
                let others = bucket.flow_back_time(taken - 1);
                Some(decision.reset_after.saturating_sub(Duration::from_micros(others)))
            }
            _ => Some(decision.reset_after),
        }
    }
}

impl Bucket {
    /// Microseconds in which `tokens` return, rounded down.
    fn flow_back_time(&self, tokens: u64) -> u64 {
        // 64 bits are almost always enough.
        if let Some(grains) = tokens.checked_mul(self.window()) {
            return grains / u64::from(self.rate());
        }
        let grains = u128::from(tokens) * u128::from(self.window());
        (grains / u128::from(self.rate())).try_into().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Cost, State, Timestamp};

    const START: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn limits() -> impl Iterator<Item = Limit> {
        let kinds = [Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::FixedWindow];
        let sizes = [(1, 300), (7, 1), (100, 60), (4_000_000_000, 86_400)];
        let one = move |kind| {
            sizes.map(|(limit, seconds)| {
                Limit::new(kind, limit, Duration::from_secs(seconds)).unwrap()
            })
        };
        kinds.into_iter().flat_map(one)
    }

    /// Takes `cost` at `at` and returns the decision.
    fn take(limit: &Limit, state: &mut State, cost: u64, at: Timestamp) -> Decision {
        let cost = Cost::new(cost).unwrap();
        let allowed = limit.admit(state, cost, at);
        limit.outcome(state, cost, at, allowed).into()
    }

    #[test]
    fn more_units_are_available_at_that_time_and_not_before() {
        for limit in limits() {
            for taken in [1, limit.capacity().div_ceil(2), limit.capacity()] {
                let mut state = State::default();
                take(&limit, &mut state, taken, START);
                // Not on a unit's boundary.
                let now = START + Duration::from_micros(333);
                let peeked = limit.outcome(&state, Cost::ONE, now, true);
                let Some(more) = limit.more_after(&peeked.into()) else {
                    assert_eq!(peeked.remaining, limit.capacity(), "{limit:?} {taken}");
                    continue;
                };
                assert!(more <= peeked.reset_after, "{limit:?}");
                let left = |at: Timestamp| limit.remaining(&state, at);
                assert!(left(now + more) > left(now), "{limit:?} {taken}");
                let before = more.saturating_sub(Duration::from_micros(3));
                assert_eq!(left(now + before), left(now), "{limit:?} {taken} {more:?}");
            }
        }
    }

    #[test]
    fn after_a_denial_it_is_the_time_of_the_retry() {
        for limit in limits() {
            let mut state = State::default();
            take(&limit, &mut state, limit.capacity(), START);
            let denied = take(&limit, &mut state, limit.capacity().min(3), START);
            assert!(!denied.allowed);
            assert_eq!(limit.more_after(&denied), Some(denied.retry_after));
        }
    }

    #[test]
    fn a_sliding_window_has_more_when_it_resets_at_the_latest() {
        let window = Duration::from_secs(60);
        for limit in [Limit::sliding_window(5, window), Limit::sliding_window_counter(5, window)] {
            let (limit, mut state) = (limit.unwrap(), State::default());
            let admitted = take(&limit, &mut state, 2, START);
            assert_eq!(limit.more_after(&admitted), Some(admitted.reset_after));
        }
    }

    #[test]
    fn an_untouched_limit_never_has_more() {
        let limit = Limit::token_bucket(5, Duration::from_secs(60)).unwrap();
        let untouched = limit.outcome(&State::default(), Cost::ONE, START, true);
        assert_eq!(limit.more_after(&untouched.into()), None);
    }

    #[test]
    fn a_share_of_a_limit_has_more_when_it_resets_at_the_latest() {
        let limit = Limit::token_bucket(100, Duration::from_secs(60)).unwrap();
        let share = limit.share(4.try_into().unwrap());
        let admitted = take(&share, &mut State::default(), 2, START);
        assert_eq!(limit.more_after(&admitted), Some(admitted.reset_after));
    }
}
