//! Ids of events that were forwarded and not stored, to recognise duplicates.

use std::collections::{HashSet, VecDeque};

use nostr::event::EventId;

use crate::relay::{event::EPHEMERAL_SECONDS, second::Second};

/// Maximum number of ids; beyond that, the oldest are evicted.
const MAX_IDS: usize = 65_536;

/// Time in which a duplicate would be accepted: an event may be early, and its duplicate late.
const LIFETIME_SECONDS: Second = 2 * EPHEMERAL_SECONDS;

/// Ids of events that are not stored, for as long as duplicates would be accepted.
#[derive(Debug, Default)]
pub(super) struct ForwardedIds {
    arrivals: VecDeque<(Second, EventId)>,
    ids: HashSet<EventId>,
}

// === impl ForwardedIds ===

impl ForwardedIds {
    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.ids.contains(id)
    }

    /// Remembers an event received at `at`.
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
        let mut passed = ForwardedIds::default();
        passed.add(id(1), 1_000);
        passed.add(id(2), 1_000 + LIFETIME_SECONDS);
        assert!(passed.contains(&id(1)) && passed.contains(&id(2)));
        passed.add(id(3), 1_001 + LIFETIME_SECONDS);
        assert!(!passed.contains(&id(1)) && passed.contains(&id(2)));
    }

    #[test]
    fn their_number_is_bounded() {
        let mut passed = ForwardedIds::default();
        for n in 0..=MAX_IDS {
            passed.add(id(n), 1_000);
        }
        assert_eq!((passed.ids.len(), passed.arrivals.len()), (MAX_IDS, MAX_IDS));
        assert!(!passed.contains(&id(0)) && passed.contains(&id(MAX_IDS)));
    }
}
