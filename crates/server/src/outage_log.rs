//! Tells of answers that the store did not give, without a line for each.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use headgate::Timestamp;

/// Says when to warn of degraded answers of one kind: one line for all of a while.
#[derive(Debug, Default)]
pub(crate) struct OutageLog {
    /// When the next line may be written, in microseconds.
    next_line_at: AtomicU64,
    /// How many answers no line has told of.
    untold: AtomicU64,
}

impl OutageLog {
    const EVERY: Duration = Duration::from_secs(10);

    pub(crate) const fn new() -> Self {
        Self { next_line_at: AtomicU64::new(0), untold: AtomicU64::new(0) }
    }

    /// Counts one answer. Returns how many to tell of, if it is time for a line.
    pub(crate) fn count(&self, now: Timestamp) -> Option<u64> {
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
