//! Tells of answers that the store did not give, without a line for each.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use headgate::{FailMode, Timestamp};
use headgate_ratelimit::KeyedAlgorithm;
use tracing::warn;

use crate::masked::Masked;

/// Warns of degraded answers, one line for all of a while.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    /// When the next line may be written, in microseconds.
    next_line_at: AtomicU64,
    /// How many answers no line has told of.
    untold: AtomicU64,
}

impl OutageLog {
    const EVERY: Duration = Duration::from_secs(10);

    /// Tells of one answer, now or with the next that is told.
    pub(crate) fn degraded(
        &self,
        now: Timestamp,
        algorithm: KeyedAlgorithm,
        key: Masked<'_>,
        mode: FailMode,
    ) {
        if let Some(answers) = self.count(now) {
            warn!(%algorithm, %key, %mode, answers, "The store cannot decide: fail mode {mode} answers");
        }
    }

    /// Counts one; how many to tell of, if it is time.
    fn count(&self, now: Timestamp) -> Option<u64> {
        self.untold.fetch_add(1, Relaxed);
        let due = self.next_line_at.load(Relaxed);
        let next = (now + Self::EVERY).as_micros();
        let is_time = now.as_micros() >= due
            && self.next_line_at.compare_exchange(due, next, Relaxed, Relaxed).is_ok();
        is_time.then(|| self.untold.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_writes_a_line_every_ten_seconds_and_forgets_nothing() {
        let log = OutageLog::default();
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        assert_eq!(log.count(at(100)), Some(1));
        for second in 100..110 {
            assert_eq!(log.count(at(second)), None);
        }
        assert_eq!(log.count(at(110)), Some(11));
        assert_eq!(log.count(at(111)), None);
    }
}
