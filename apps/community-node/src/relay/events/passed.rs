//! What was passed on and is not kept, so that nobody passes it on again.

use std::collections::{HashSet, VecDeque};

use nostr::event::EventId;

use crate::relay::{event::EPHEMERAL_SECONDS, second::Second};

/// How many ids are remembered; then those that came first are forgotten.
const MAX_IDS: usize = 65_536;

/// How long an event can come again: it may have been early, and may then be late.
const LIFETIME_SECONDS: Second = 2 * EPHEMERAL_SECONDS;

/// The ids of events that are not kept, for as long as they could come again.
#[derive(Debug, Default)]
pub(super) struct Passed {
    arrivals: VecDeque<(Second, EventId)>,
    ids: HashSet<EventId>,
}

// === impl Passed ===

impl Passed {
    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.ids.contains(id)
    }

    /// Remembers an event that came at `at`.
    pub(super) fn add(&mut self, id: EventId, at: Second) {
        let is_old = |(came, _): &(Second, EventId)| came.saturating_add(LIFETIME_SECONDS) < at;
        while self.arrivals.len() >= MAX_IDS || self.arrivals.front().is_some_and(is_old) {
            if let Some((_, id)) = self.arrivals.pop_front() {
                self.ids.remove(&id);
            }
        }
        if self.ids.insert(id) {
            self.arrivals.push_back((at, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> EventId {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        EventId::from_byte_array(bytes)
    }

    #[test]
    fn ids_are_remembered_as_long_as_they_could_come_again() {
        let mut passed = Passed::default();
        passed.add(id(1), 1_000);
        passed.add(id(2), 1_000 + LIFETIME_SECONDS);
        assert!(passed.contains(&id(1)) && passed.contains(&id(2)));
        passed.add(id(3), 1_001 + LIFETIME_SECONDS);
        assert!(!passed.contains(&id(1)) && passed.contains(&id(2)));
    }

    #[test]
    fn their_number_is_bounded() {
        let mut passed = Passed::default();
        for n in 0..=MAX_IDS {
            passed.add(id(n), 1_000);
        }
        assert_eq!((passed.ids.len(), passed.arrivals.len()), (MAX_IDS, MAX_IDS));
        assert!(!passed.contains(&id(0)) && passed.contains(&id(MAX_IDS)));
    }
}
