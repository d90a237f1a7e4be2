use std::fmt;

use headgate_persistence::LedgerClock;

/// A large difference between this machine's clock and the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// Microseconds by which the machine's clock is ahead; negative if behind.
    micros: i64,
}

/// Skew beyond which a server reports itself degraded, in microseconds.
const MAX: u64 = 5_000_000;

impl Skew {
    /// The skew that `clock` measured, if it is too large.
    pub fn of(clock: &LedgerClock) -> Option<Self> {
        Self::new(clock.skew())
    }

    fn new(micros: i64) -> Option<Self> {
        (micros.unsigned_abs() > MAX).then_some(Self { micros })
    }
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.micros.unsigned_abs() / 1_000_000;
        let direction = if self.micros > 0 { "ahead of" } else { "behind" };
        write!(
            f,
            "this machine's clock is {seconds} s {direction} the database's, which decides the \
             periods of quotas: synchronise it"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_beyond_the_bound_has_a_direction() {
        let beyond = |seconds: i64| Skew::new(seconds * 1_000_000);
        assert_eq!((beyond(5), beyond(-5), beyond(0)), (None, None, None));
        let message = |seconds| beyond(seconds).unwrap().to_string();
        assert!(
            message(93_600).starts_with("this machine's clock is 93600 s ahead of the database's")
        );
        assert!(message(-6).starts_with("this machine's clock is 6 s behind the database's"));
        assert!(Skew::new(i64::MIN).is_some());
    }
}
