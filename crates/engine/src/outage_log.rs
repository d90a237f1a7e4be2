//! Throttled warnings.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::Timestamp;

/// Throttles warnings about a failure that repeats, such as that of a store: one log line every ten
/// seconds, with the number of answers concerned.
#[derive(Debug, Default)]
pub struct OutageLog {
    /// Earliest time of the next line, in microseconds.
    next_line_at: AtomicU64,
    /// Answers since the last line.
    unreported: AtomicU64,
}

impl OutageLog {
    const INTERVAL: Duration = Duration::from_secs(10);

    /// Creates a log whose first line is due at once.
    pub const fn new() -> Self {
        Self { next_line_at: AtomicU64::new(0), unreported: AtomicU64::new(0) }
    }

    /// Counts one answer; if a line is due, returns the number of answers it reports.
    pub fn count(&self, now: Timestamp) -> Option<u64> {
        self.unreported.fetch_add(1, Relaxed);
        let due = self.next_line_at.load(Relaxed);
        let next = (now + Self::INTERVAL).as_micros();
        let is_due = now.as_micros() >= due
            && self.next_line_at.compare_exchange(due, next, Relaxed, Relaxed).is_ok();
        is_due.then(|| self.unreported.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_every_ten_seconds_and_reports_all_answers_since_the_last() {
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
