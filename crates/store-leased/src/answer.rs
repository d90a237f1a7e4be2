//! The last answer of the store about a subject.

use std::time::Duration;

use headgate::Timestamp;

use crate::holding::micros;

/// The steady times from before a call and after it, in microseconds. The store decided in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTimes {
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
}

/// An answer of the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Steady time from before the call.
    pub(crate) sent: u64,
    pub(crate) at: Timestamp,
    pub(crate) reset_at: u64,
    pub(crate) remaining: u64,
    /// Steady time until which it is repeated for a batch that another limit denies.
    pub(crate) until: u64,
}

impl Answer {
    pub(crate) const fn none(now: u64) -> Self {
        Self { sent: now, at: Timestamp::from_micros(0), reset_at: now, remaining: 0, until: 0 }
    }

    pub(crate) fn reset_after(&self, now: u64) -> Duration {
        micros(self.reset_at.saturating_sub(now))
    }

    /// The time of the store, as far as it is known.
    pub(crate) fn time(&self, now: u64) -> Timestamp {
        self.at.plus(now.saturating_sub(self.sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ages_by_the_steady_clock() {
        let at = Timestamp::from_micros(50_000);
        let answer = Answer { at, reset_at: 3_000, ..Answer::none(1_000) };
        assert_eq!(
            [1_000, 1_500, 4_000].map(|now| answer.reset_after(now).as_micros()),
            [2_000, 1_500, 0]
        );
        assert_eq!(
            [500, 1_000, 1_500].map(|now| answer.time(now).as_micros()),
            [50_000, 50_000, 50_500]
        );
    }
}
