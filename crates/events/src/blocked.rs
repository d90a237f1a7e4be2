use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

use headgate_quota::Subject;
use tokio::time::Instant;

/// Subjects with a rejected or failed event, each with the time of its next attempt.
///
/// Subjects are known by a keyed hash, so that very many fit into memory. Another subject with the
/// same hash would only wait as well.
#[derive(Debug, Default)]
pub(crate) struct BlockedSubjects {
    retries: HashMap<u64, Retry>,
    keys: RandomState,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    attempts: u32,
    at: Instant,
}

/// Maximum number of subjects: an estimated 35 MB.
const MAX: usize = 500_000;

/// Pause after the first attempt; each further one doubles it. It is at most half the pause
/// between two passes, so that no pass comes too early for a few subjects.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Maximum pause, for every thousand subjects: however many there are, a receiver gets fewer than
/// a hundred repeated events a second.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Attempts after which events of a subject may be given up: a receiver may reject events by
/// mistake for a moment.
const MIN_ATTEMPTS: u32 = 10;

impl BlockedSubjects {
    pub(crate) fn is_empty(&self) -> bool {
        self.retries.is_empty()
    }

    /// Returns true if no more subjects can be blocked.
    pub(crate) fn is_full(&self) -> bool {
        self.retries.len() >= MAX
    }

    /// Returns true if the events of `subject` are not due at this time.
    pub(crate) fn contains(&self, subject: &Subject, at: Instant) -> bool {
        self.get(subject).is_some_and(|retry| retry.at > at)
    }

    /// Returns true if events of `subject` have failed often.
    pub(crate) fn is_persistent(&self, subject: &Subject) -> bool {
        self.get(subject).is_some_and(|retry| retry.attempts >= MIN_ATTEMPTS)
    }

    /// Records a failed attempt.
    pub(crate) fn insert(&mut self, subject: &Subject, now: Instant) {
        let thousands = u32::try_from(self.retries.len() / 1000).unwrap_or(u32::MAX);
        let max = MAX_PAUSE.saturating_mul(thousands.saturating_add(1));
        let hash = self.keys.hash_one(subject);
        let retry = self.retries.entry(hash).or_insert(Retry { attempts: 0, at: now });
        let pause = FIRST_PAUSE.saturating_mul(1 << retry.attempts.min(24)).min(max);
        *retry = Retry { attempts: retry.attempts.saturating_add(1), at: now + pause };
    }

    /// Forgets a subject whose events were delivered.
    pub(crate) fn remove(&mut self, subject: &Subject) {
        if !self.retries.is_empty() {
            self.retries.remove(&self.keys.hash_one(subject));
        }
    }

    /// Forgets subjects that were due at this time.
    pub(crate) fn remove_due(&mut self, at: Instant) {
        self.retries.retain(|_, retry| retry.at > at);
    }

    /// Returns the time at which the first subject is due.
    pub(crate) fn first_due(&self) -> Option<Instant> {
        self.retries.values().map(|retry| retry.at).min()
    }

    fn get(&self, subject: &Subject) -> Option<&Retry> {
        // No hash in the usual case.
        if self.retries.is_empty() {
            return None;
        }
        self.retries.get(&self.keys.hash_one(subject))
    }
}

#[cfg(test)]
mod tests {
    use headgate_quota::SubjectType;

    use super::*;

    fn subject(number: usize) -> Subject {
        Subject { kind: SubjectType::Tenant, id: number.to_string() }
    }

    #[test]
    fn pauses_double_and_grow_with_the_number_of_subjects() {
        let (mut blocked, now) = (BlockedSubjects::default(), Instant::now());
        let pause = |blocked: &BlockedSubjects, number| {
            blocked.get(&subject(number)).unwrap().at.duration_since(now)
        };
        for expected in [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            blocked.insert(&subject(0), now);
            assert_eq!(pause(&blocked, 0), Duration::from_millis(expected));
        }
        assert!(!blocked.is_persistent(&subject(0)));
        for number in 1..10_000 {
            blocked.insert(&subject(number), now);
        }
        assert_eq!(pause(&blocked, 9_999), FIRST_PAUSE, "a new one does not wait for the others");
        for _ in 0..40 {
            blocked.insert(&subject(0), now);
        }
        assert_eq!(pause(&blocked, 0), Duration::from_secs(11 * 15));
        assert!(blocked.is_persistent(&subject(0)));
        assert_eq!(blocked.first_due(), Some(now + FIRST_PAUSE));
        blocked.remove_due(now + FIRST_PAUSE);
        assert_eq!(blocked.retries.len(), 1);
    }
}
