//! The subjects that were seen lately.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::fingerprint::Fingerprint;

/// When subjects were last seen, in a table of fixed size. A subject that is seen once costs one
/// write here, and nothing else; only if it comes back soon is it worth an entry.
///
/// Subjects overwrite each other. One that is forgotten is asked for at the store once more.
#[derive(Debug)]
pub(crate) struct Recent {
    /// A half of a fingerprint, and milliseconds of the steady clock.
    slots: Box<[AtomicU64]>,
}

impl Recent {
    /// At least `size` slots.
    pub(crate) fn new(size: usize) -> Self {
        Self { slots: (0..size.next_power_of_two()).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes that the subject is seen at `now`. Returns when it was seen before, if that is at most
    /// `within` ago; all in microseconds.
    pub(crate) fn see(&self, subject: Fingerprint, now: u64, within: u64) -> Option<u64> {
        let slot = &self.slots[subject.0 as usize & (self.slots.len() - 1)];
        // Never zero, so that an empty slot is no subject's.
        let tag = subject.1 as u32 | 1;
        let before = slot.swap(u64::from(tag) << 32 | u64::from(millis(now)), Relaxed);
        if (before >> 32) as u32 != tag {
            return None;
        }
        let elapsed = u64::from(millis(now).wrapping_sub(before as u32)) * 1_000;
        (elapsed <= within).then(|| now.saturating_sub(elapsed))
    }
}

/// It wraps after 49 days.
const fn millis(micros: u64) -> u32 {
    (micros / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_subject_that_comes_back_soon_is_known() {
        let recent = Recent::new(4);
        let [a, b] = [Fingerprint(0, 3), Fingerprint(4, 5)];
        assert_eq!(recent.see(a, 1_000_000, 200_000), None);
        assert_eq!(recent.see(a, 1_150_000, 200_000), Some(1_000_000));
        assert_eq!(recent.see(a, 1_351_000, 200_000), None, "too late");
        assert_eq!(recent.see(b, 1_352_000, 200_000), None, "another one in the same slot");
        assert_eq!(recent.see(a, 1_353_000, 200_000), None, "overwritten");
    }

    #[test]
    fn a_new_subject_is_not_taken_for_one_that_was_seen_at_the_start() {
        for half in 0..4 {
            let recent = Recent::new(1);
            assert_eq!(recent.see(Fingerprint(0, half), 100_000, 200_000), None, "{half}");
        }
    }
}
