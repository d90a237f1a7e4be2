//! Events that their authors deleted (NIP-09), so that they are not accepted again.

use std::collections::HashMap;

use nostr::{event::EventId, filter::SingleLetterTag, key::PublicKey};

use crate::relay::{address::Address, event::VerifiedEvent, footprint, second::Second};

/// Targets of the stored deletions.
#[derive(Debug, Default)]
pub(super) struct Deletions(HashMap<Target, Deleted>);

/// Target of a deletion. The author is part of it, because authors can only delete their own
/// events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Event(EventId, PublicKey),
    /// All events at this address that are not newer than the deletion.
    Address(Address),
}

#[derive(Clone, Copy, Debug, Default)]
struct Deleted {
    /// Time of the newest deletion.
    at: Second,
    /// Number of stored deletions with this target.
    count: usize,
}

// === impl Target ===

impl Target {
    /// Returns true if `deletion`, which has this target, deletes `event`.
    pub(super) fn covers(&self, event: &VerifiedEvent, deletion: &VerifiedEvent) -> bool {
        match self {
            // Deleting a deletion has no effect.
            Self::Event(_, author) => event.author() == author && !event.is_deletion(),
            Self::Address(_) => event.event.created_at <= deletion.event.created_at,
        }
    }
}

// === impl Deletions ===

impl Deletions {
    /// Adds the targets of `event`.
    pub(super) fn add(&mut self, event: &VerifiedEvent) {
        for target in targets(event) {
            let deleted = self.0.entry(target).or_default();
            deleted.at = deleted.at.max(event.event.created_at.as_secs());
            deleted.count += 1;
        }
    }

    /// Removes the targets of `event` that no other deletion has.
    pub(super) fn remove(&mut self, event: &VerifiedEvent) {
        for target in targets(event) {
            if let Some(deleted) = self.0.get_mut(&target) {
                deleted.count -= 1;
                if deleted.count == 0 {
                    self.0.remove(&target);
                }
            }
        }
        footprint::give_back(&mut self.0);
    }

    /// Returns true if the author of `event` deleted it.
    pub(super) fn cover(&self, event: &VerifiedEvent) -> bool {
        if self.0.is_empty() || event.is_deletion() {
            return false;
        }
        let by_id = Target::Event(event.event.id, event.event.pubkey);
        let by_address = event.address.as_deref().cloned().map(Target::Address);
        let at = event.event.created_at.as_secs();
        self.0.contains_key(&by_id)
            || by_address
                .is_some_and(|address| self.0.get(&address).is_some_and(|deleted| at <= deleted.at))
    }
}

/// Targets of `event`; none if it is not a deletion.
pub(super) fn targets(event: &VerifiedEvent) -> impl Iterator<Item = Target> {
    let author = event.event.pubkey;
    let named = |letter| event.tagged(letter).filter(|_| event.is_deletion());
    let events = named(SingleLetterTag::LOWERCASE_E)
        .filter_map(move |id| Some(Target::Event(EventId::from_hex(id).ok()?, author)));
    let addresses = named(SingleLetterTag::LOWERCASE_A)
        .filter_map(Address::read)
        .filter(move |address| address.author == author);
    events.chain(addresses.map(Target::Address))
}

/// Bytes that the targets of `event` take.
pub(super) fn cost(event: &VerifiedEvent) -> usize {
    let costs = targets(event).map(|target| {
        let owned = match &target {
            Target::Event(..) => 0,
            Target::Address(address) => address.footprint(),
        };
        footprint::slot::<(Target, Deleted)>() + owned
    });
    costs.sum()
}
