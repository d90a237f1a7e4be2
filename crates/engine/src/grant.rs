//! Grants: units that an instance took in advance, and hands out by itself.
//!
//! A unit of a grant may be spent at any time until the grant ends. So it is *admitted* by the
//! state at the time of the call, counts against the limit while the grant lasts, and is *recorded*
//! as if it had been taken in the last microsecond of the grant: a bucket does not refill, and a
//! sliding window does not forget, while the unit may still be spent. Whatever the instances do
//! with their units, the limit could have admitted it.
//!
//! Units come back only before the end of their grant, and only from it. Subtracting them from a
//! state in which a later grant is already recorded would move that grant to an earlier time, and
//! admit units twice.

use std::time::Duration;

use crate::{Limit, Timestamp};

/// Units that may be spent without asking the store until `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Number of units.
    pub units: u64,
    /// End of the grant, by the store's clock: the first time at which no unit may be spent.
    pub until: Timestamp,
}

/// Units that a check takes in advance, if they are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extra {
    units: u32,
    /// Microseconds.
    hold: u32,
}

impl Grant {
    /// Maximum number of grants of a key with different ends. There are two while the hold does not
    /// change; beyond the maximum, nothing is granted.
    pub const MAX_ENDS: usize = 4;

    /// The end of a grant that is made at `now`: within `hold`, and in the same window.
    ///
    /// Ends are multiples of half the hold, so that the grants of all instances have few different
    /// ends, and a store has little to remember.
    pub fn end(limit: &Limit, hold: Duration, now: Timestamp) -> Timestamp {
        let step = (hold.as_micros() as u64 / 2).max(1);
        let end = Timestamp::from_micros((now.as_micros() / step + 2) * step);
        limit.window_end(now).map_or(end, |window| end.min(window))
    }

    /// The last time at which its units can have been spent.
    pub(crate) const fn last(&self) -> Timestamp {
        Timestamp::from_micros(self.until.as_micros().saturating_sub(1))
    }
}

impl Extra {
    /// The longest hold.
    pub const MAX_HOLD: Duration = Duration::from_secs(1);

    /// Up to `units`, held for at most `hold`, and at most [`MAX_HOLD`](Self::MAX_HOLD).
    pub fn new(units: u32, hold: Duration) -> Self {
        Self { units, hold: hold.min(Self::MAX_HOLD).as_micros() as u32 }
    }

    /// Maximum number of units.
    pub const fn units(self) -> u64 {
        self.units as u64
    }

    /// Longest time until the grant ends.
    pub const fn hold(self) -> Duration {
        Duration::from_micros(self.hold as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Account, Check, Cost, Key, Verb};

    const SECOND: u64 = 1_000_000;

    #[test]
    fn a_grant_lasts_for_at_least_half_the_hold_and_ends_with_its_window() {
        let bucket = Limit::token_bucket(10, Duration::from_secs(60)).unwrap();
        let window = Limit::fixed_window(10, Duration::from_secs(60)).unwrap();
        let hold = Duration::from_millis(200);
        for offset in [0, 1, 99_999, 100_000, 199_999, 59 * SECOND + 950_000] {
            let now = Timestamp::from_micros(600 * SECOND + offset);
            let length = Grant::end(&bucket, hold, now).since(now);
            assert!((100_001..=200_000).contains(&length), "{offset}: {length}");
            assert!(Grant::end(&window, hold, now) <= Timestamp::from_micros(660 * SECOND));
        }
        let last = Timestamp::from_micros(659 * SECOND + 999_999);
        assert_eq!(Grant::end(&window, hold, last).since(last), 1);
    }

    #[test]
    fn grants_of_one_hold_have_at_most_two_ends_at_a_time() {
        let bucket = Limit::token_bucket(10, Duration::from_secs(60)).unwrap();
        let hold = Duration::from_micros(1_001);
        let ends: Vec<_> = (5_000..20_000)
            .map(|now| (now, Grant::end(&bucket, hold, Timestamp::from_micros(now)).as_micros()))
            .collect();
        for (now, _) in &ends {
            let mut live: Vec<u64> =
                ends.iter().filter(|(t, end)| t <= now && end > now).map(|(_, end)| *end).collect();
            live.dedup();
            assert!(live.len() <= 2, "{now}: {live:?}");
        }
    }

    /// Grants 10 units and later 2 more, gives the 10 back, and spends the 2 at the last moment: a
    /// bucket that had recorded both at once, and subtracted 10, would be full by then.
    #[test]
    fn what_comes_back_does_not_move_a_later_grant() {
        let limit = Limit::token_bucket(1_000, Duration::from_secs(1)).unwrap();
        let limit = limit.with_burst(40).unwrap();
        let hold = Duration::from_millis(20);
        let check = |units: u64| {
            Check::new(Key::new("u").unwrap(), &limit, Cost::new(units).unwrap()).unwrap()
        };
        let lease = |account: &mut Account, units, at| {
            let check = check(1).with_extra(Extra::new(units, hold));
            account.settle(&limit, at);
            account.act(&check, Verb::Lease, at, true).unwrap()
        };
        let start = Timestamp::from_micros(SECOND);
        let mut account = Account::default();
        let first = lease(&mut account, 10, start);
        let second = lease(&mut account, 2, start.plus(11_000));
        assert!(first.until < second.until);

        let back = check(10).from_grant_until(first.until);
        let at = start.plus(12_000);
        assert!(account.permits(&back, Verb::GiveBack, at));
        account.act(&back, Verb::GiveBack, at, true);
        assert!(!account.permits(&back, Verb::GiveBack, at), "only once");

        let last = second.last();
        account.settle(&limit, last);
        let left = account.outcome(&limit, Verb::Peek, Cost::ONE, last, true).remaining;
        assert_eq!(left + second.units, 40);
        let late = check(2).from_grant_until(second.until);
        account.settle(&limit, second.until);
        assert!(!account.permits(&late, Verb::GiveBack, second.until), "too late");
    }
}
