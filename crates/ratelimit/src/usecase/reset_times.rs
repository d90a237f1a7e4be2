//! Times of resets, so that nothing is refunded that was taken before one.
//!
//! A reset deletes what was counted, and a refund cannot see that in the counts that follow. So a
//! reset leaves the time of each counter that it deleted, as a limit of one unit on a key of its
//! own, for as long as a check can be refunded.

use std::{fmt::Write as _, time::Duration};

use headgate::{
    Batch, BatchLimiter, Check, CheckMode, Cost, Key, KeySpace, Limit, Outcome, StoreError,
    Timestamp, Verb,
};
use sha2::{Digest as _, Sha256};

/// The longest time for which a check can be refunded.
pub(super) const MAX_REFUNDABLE: Duration = Duration::from_hours(24);

const TIMES: KeySpace<'static> = KeySpace::new("ratelimit:reset:", "");

/// The times at which some counters were last reset.
pub(super) struct ResetTimes {
    keys: Vec<String>,
    limit: Option<Limit>,
}

impl ResetTimes {
    /// Those of the counters with these key spaces and subjects.
    pub(super) fn of<'a>(counters: impl Iterator<Item = (&'a KeySpace<'a>, &'a str)>) -> Self {
        let key = |(space, subject): (&KeySpace<'_>, &str)| {
            let [prefix, suffix] = space.parts();
            digest([prefix, subject, suffix], &[])
        };
        Self {
            keys: counters.map(key).collect(),
            limit: Limit::sliding_window(1, MAX_REFUNDABLE).ok(),
        }
    }

    /// The checks that read the times, in the order of the counters.
    ///
    /// They are exact: what new subjects share while a store is full is no time of a reset.
    pub(super) fn checks(&self) -> impl Iterator<Item = Check<'_>> {
        self.keys.iter().filter_map(|key| self.check(key))
    }

    /// Always a check: a digest is a valid key, and a day a valid window.
    fn check<'a>(&'a self, key: &'a str) -> Option<Check<'a>> {
        let key = Key::new(key).ok()?.within(&TIMES);
        Some(Check::new(key, self.limit.as_ref()?, Cost::ONE).ok()?.exact())
    }

    /// Records that the counters are reset now. If the store has no room for a time, it has none.
    pub(super) async fn record(&self, limiter: &BatchLimiter) -> Result<(), StoreError> {
        let checks = self.checks().map(|check| check.with_mode(CheckMode::Independent));
        let Ok(batch) = Batch::new(checks) else { return Ok(()) };
        let outcomes = limiter.apply(Verb::Acquire, &batch).await?;
        if outcomes.iter().any(|outcome| outcome.degraded.is_some()) {
            return Err(StoreError::Refused("the time of the reset".to_owned()));
        }
        Ok(())
    }

    /// Returns `true` if the answer to a check says that its counter was reset at `taken_at` or
    /// later.
    pub(super) fn is_after(outcome: &Outcome, taken_at: Timestamp) -> bool {
        let recorded = outcome.remaining == 0;
        recorded && outcome.at + outcome.reset_after >= taken_at + MAX_REFUNDABLE
    }
}

/// Returns a key that stands for `parts` and what follows them.
pub(super) fn digest<'a>(parts: impl IntoIterator<Item = &'a str>, rest: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(rest);
    hash.finalize()[..16].iter().fold(String::with_capacity(32), |mut key, byte| {
        // Writing to a string does not fail.
        let _ = write!(key, "{byte:02x}");
        key
    })
}
