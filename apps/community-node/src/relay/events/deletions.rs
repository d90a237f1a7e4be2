//! What authors have deleted (NIP-09), so that it does not come back.

use std::collections::HashMap;

use nostr::{event::EventId, filter::SingleLetterTag, key::PublicKey};

use crate::relay::{address::Address, event::VerifiedEvent, footprint, second::Second};

/// What the deletions that are kept have deleted.
#[derive(Debug, Default)]
pub(super) struct Deletions(HashMap<Target, Deleted>);

/// What a deletion names. Its author is part of it: nobody deletes what others wrote.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Event(EventId, PublicKey),
    /// Everything at this address that is not newer than the deletion.
    Address(Address),
}

#[derive(Clone, Copy, Debug, Default)]
struct Deleted {
    /// The time of the newest deletion.
    at: Second,
    /// The number of deletions that name it and are kept.
    count: usize,
}

// === impl Target ===

impl Target {
    /// Whether `deletion`, which names this, deletes `event`, which is kept under it.
    pub(super) fn covers(&self, event: &VerifiedEvent, deletion: &VerifiedEvent) -> bool {
        match self {
            // To delete a deletion has no effect.
            Self::Event(_, author) => event.author() == author && !event.is_deletion(),
            Self::Address(_) => event.event.created_at <= deletion.event.created_at,
        }
    }
}

// === impl Deletions ===

impl Deletions {
    /// Notes what `event` deletes.
    pub(super) fn add(&mut self, event: &VerifiedEvent) {
        for target in targets(event) {
            let deleted = self.0.entry(target).or_default();
            deleted.at = deleted.at.max(event.event.created_at.as_secs());
            deleted.count += 1;
        }
    }

    /// Forgets what `event` deletes, unless another deletion names it too.
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

    /// Whether the author of `event` has deleted it.
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

/// What `event` deletes; nothing if it is no deletion.
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

/// Memory of what is noted of `event`.
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
