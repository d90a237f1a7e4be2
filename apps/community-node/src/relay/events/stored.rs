//! Stored events, indexed by topic and time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, btree_set},
    ops::Bound,
    sync::Arc,
};

use nostr::event::EventId;

use super::{
    Capacity, Published,
    deletions::{self, Deletions, Target},
    forwarded::ForwardedIds,
    walk::{Stretch, Walk},
};
use crate::relay::{address::Address, event::VerifiedEvent, footprint, second::Second};

/// Events in the order in which they were received, and by topic newest first.
#[derive(Debug)]
pub(super) struct StoredEvents {
    /// Events by sequence number.
    arrivals: BTreeMap<u64, Arc<Published>>,
    ids: HashMap<EventId, u64>,
    passed: ForwardedIds,
    topics: HashMap<Box<str>, BTreeSet<Newest>>,
    /// The one event at each address.
    addresses: HashMap<Address, u64>,
    deletions: Deletions,
    /// Events that expire, the earliest first.
    expiring: BTreeSet<(Second, u64)>,
    capacity: Capacity,
    bytes: usize,
    last_number: u64,
}

/// Position of an event in an index: newer events first, then lower ids.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    at: Reverse<Second>,
    id: EventId,
    event: Option<Arc<Published>>,
}

/// Entries of one topic, newest first.
type Entries<'k> = btree_set::Range<'k, Newest>;

// === impl StoredEvents ===

impl StoredEvents {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            arrivals: BTreeMap::new(),
            ids: HashMap::new(),
            passed: ForwardedIds::default(),
            topics: HashMap::new(),
            addresses: HashMap::new(),
            deletions: Deletions::default(),
            expiring: BTreeSet::new(),
            capacity,
            bytes: 0,
            last_number: 0,
        }
    }

    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.ids.contains_key(id) || self.passed.contains(id)
    }

    /// Returns true if the author of `event` deleted it.
    pub(super) fn has_deleted(&self, event: &VerifiedEvent) -> bool {
        self.deletions.cover(event)
    }

    /// Returns true if a newer event is stored at the address of `event`; in the same second, the
    /// lower id is newer.
    pub(super) fn has_newer(&self, event: &VerifiedEvent) -> bool {
        let kept = event.address.as_deref().and_then(|address| self.addresses.get(address));
        let kept = kept.and_then(|number| self.arrivals.get(number));
        kept.is_some_and(|kept| Newest::of(kept) < Newest::place_of(event))
    }

    /// Remembers the id of an event that is not stored.
    pub(super) fn pass(&mut self, published: &Published) {
        self.passed.add(published.event.event.id, published.at);
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Returns at most `limit` events, the latest received first.
    pub(super) fn newest(&self, limit: usize) -> Vec<Arc<Published>> {
        self.arrivals.values().rev().take(limit).cloned().collect()
    }

    /// Removes the events that `event` deletes, and returns their topics.
    pub(super) fn delete(&mut self, event: &VerifiedEvent) -> Box<[Box<str>]> {
        let mut topics = BTreeSet::new();
        for target in deletions::targets(event) {
            let number = match &target {
                Target::Event(id, _) => self.ids.get(id),
                Target::Address(address) => self.addresses.get(address),
            };
            let kept = number.and_then(|number| self.arrivals.get(number));
            let Some(kept) = kept.filter(|kept| target.covers(&kept.event, event)).cloned() else {
                continue;
            };
            topics.extend(kept.event.topics().map(Box::from));
            self.remove(kept.number);
        }
        topics.into_iter().collect()
    }

    /// Stores an event in place of an older one at its address.
    pub(super) fn keep(&mut self, published: Arc<Published>) {
        self.bytes += cost(&published);
        let (event, number) = (&published.event, published.number);
        self.ids.insert(event.event.id, number);
        self.deletions.add(event);
        self.expiring.extend(event.expires_at.map(|end| (end, number)));
        let address = event.address.as_deref().cloned();
        if let Some(older) = address.and_then(|address| self.addresses.insert(address, number)) {
            self.remove(older);
        }
        for topic in published.event.topics() {
            if !self.topics.contains_key(topic) {
                self.bytes += topic_cost(topic);
                self.topics.insert(topic.into(), BTreeSet::new());
            }
            if let Some(of_topic) = self.topics.get_mut(topic) {
                of_topic.insert(Newest::of(&published));
            }
        }
        self.arrivals.insert(number, published);
        while self.arrivals.len() > self.capacity.max_events || self.bytes > self.capacity.max_bytes
        {
            self.forget_first();
        }
    }

    /// Removes events received before `at`.
    pub(super) fn forget_before(&mut self, at: Second) {
        while self.arrivals.first_key_value().is_some_and(|(_, first)| first.at < at) {
            self.forget_first();
        }
    }

    /// Removes events that have expired at `now`.
    pub(super) fn forget_expired(&mut self, now: Second) {
        while let Some(&(end, number)) = self.expiring.first()
            && end <= now
        {
            self.expiring.remove(&(end, number));
            self.remove(number);
        }
    }

    fn forget_first(&mut self) {
        if let Some((&number, _)) = self.arrivals.first_key_value() {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        let Some(gone) = self.arrivals.remove(&number) else {
            return;
        };
        let event = &gone.event;
        self.bytes -= cost(&gone);
        self.ids.remove(&event.event.id);
        self.deletions.remove(event);
        if let Some(end) = event.expires_at {
            self.expiring.remove(&(end, number));
        }
        // A newer event may be at its address.
        if let Some(address) = event.address.as_deref()
            && self.addresses.get(address) == Some(&number)
        {
            self.addresses.remove(address);
        }
        let entry = Newest::of(&gone);
        for topic in event.topics() {
            if let Some(of_topic) = self.topics.get_mut(topic) {
                of_topic.remove(&entry);
                if of_topic.is_empty() {
                    self.topics.remove(topic);
                    self.bytes -= topic_cost(topic);
                }
            }
        }
        footprint::give_back(&mut self.topics);
        footprint::give_back(&mut self.addresses);
    }

    /// Returns the next events of a walk, newest first, without duplicates.
    pub(super) fn step(&self, walk: &mut Walk<'_>) -> Vec<Arc<Published>> {
        let mut entries: Vec<_> =
            walk.stretches.iter().filter_map(|stretch| self.rest(stretch, walk)).collect();
        let heads = entries.iter_mut().enumerate();
        let mut heads: BinaryHeap<_> =
            heads.filter_map(|(of, entries)| Some(Reverse((entries.next()?, of)))).collect();
        let (mut seen, mut visited, mut last) = (Vec::new(), 0, None);
        while visited < walk.step()
            && let Some(Reverse((entry, of))) = heads.pop()
        {
            visited += 1;
            // An event of several topics is in the index of each.
            if last != Some(entry) {
                seen.extend(entry.event.clone());
                last = Some(entry);
            }
            heads.extend(entries[of].next().map(|next| Reverse((next, of))));
        }
        walk.advance(visited, last.map(Newest::place));
        seen
    }

    /// Returns the remaining entries of one range of a walk.
    fn rest<'k>(&'k self, stretch: &Stretch<'_>, walk: &Walk<'_>) -> Option<Entries<'k>> {
        let last = walk.last.as_ref().filter(|last| **last >= stretch.newest);
        // The bounds may be reversed, and the walk may be past them.
        if *last.unwrap_or(&stretch.newest) >= stretch.oldest {
            return None;
        }
        let first = last.map_or(Bound::Included(&stretch.newest), Bound::Excluded);
        let of_topic = self.topics.get(stretch.topic)?;
        Some(of_topic.range((first, Bound::Included(&stretch.oldest))))
    }
}

/// Bytes that an event takes: itself, and its entries in the indexes.
fn cost(published: &Published) -> usize {
    let event = &published.event;
    let address = |address: &Address| footprint::slot::<(Address, u64)>() + address.footprint();
    let deleted: usize = published.deleted_topics.iter().map(|topic| footprint::text(topic)).sum();
    footprint::list::<Published>(1)
        + footprint::leaf::<(u64, Arc<Published>)>()
        + footprint::slot::<(EventId, u64)>()
        + footprint::leaf::<Newest>() * event.topics().count()
        + event.footprint()
        + event.address.as_deref().map_or(0, address)
        + event.expires_at.map_or(0, |_| footprint::leaf::<(Second, u64)>())
        + deletions::cost(event)
        + footprint::list::<Box<str>>(published.deleted_topics.len())
        + deleted
}

/// Bytes that a topic takes, however many events it has.
fn topic_cost(topic: &str) -> usize {
    footprint::slot::<(Box<str>, BTreeSet<Newest>)>()
        + footprint::text(topic)
        + footprint::tree::<Newest>(1)
}

// === impl Newest ===

impl Newest {
    fn of(published: &Arc<Published>) -> Self {
        Self { event: Some(Arc::clone(published)), ..Self::place_of(&published.event) }
    }

    /// Position of an event.
    fn place_of(event: &VerifiedEvent) -> Self {
        let at = Reverse(event.event.created_at.as_secs());
        Self { at, id: event.event.id, event: None }
    }

    /// Bound of a range.
    pub(super) fn bound(at: Second, id: [u8; 32]) -> Self {
        Self { at: Reverse(at), id: EventId::from_byte_array(id), event: None }
    }

    /// The position without the event.
    fn place(&self) -> Self {
        Self { event: None, ..self.clone() }
    }

    fn key(&self) -> (Reverse<Second>, EventId) {
        (self.at, self.id)
    }
}

impl Ord for Newest {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Newest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Newest {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Newest {}

#[cfg(test)]
mod tests;
