//! What is kept of the events, found by topic and time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use nostr::event::EventId;

use super::{Capacity, Published};
use crate::relay::{
    filter::{MAX_LIMIT, Query},
    second::Second,
};

/// What an event costs beside its JSON, and each of its topics.
const OVERHEAD_BYTES: usize = 512;
const TOPIC_BYTES: usize = 128;

/// Events in the order in which they came, and by topic newest first.
#[derive(Debug)]
pub(super) struct Kept {
    arrivals: VecDeque<Arc<Published>>,
    ids: HashSet<EventId>,
    topics: HashMap<Box<str>, BTreeSet<Newest>>,
    capacity: Capacity,
    bytes: usize,
    last_number: u64,
}

/// An event that comes before older ones, and before later ids of the same second.
#[derive(Clone, Debug)]
struct Newest {
    at: Reverse<Second>,
    id: EventId,
    event: Option<Arc<Published>>,
}

// === impl Kept ===

impl Kept {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            arrivals: VecDeque::new(),
            ids: HashSet::new(),
            topics: HashMap::new(),
            capacity,
            bytes: 0,
            last_number: 0,
        }
    }

    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.ids.contains(id)
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// At most `limit` events, those that came last first.
    pub(super) fn newest(&self, limit: usize) -> Vec<Arc<Published>> {
        self.arrivals.iter().rev().take(limit).cloned().collect()
    }

    pub(super) fn keep(&mut self, published: Arc<Published>) {
        self.bytes += cost(&published);
        self.ids.insert(published.event.event.id);
        for topic in published.event.topics() {
            let of_topic = self.topics.entry(topic.into()).or_default();
            of_topic.insert(Newest::of(&published));
        }
        self.arrivals.push_back(published);
        while self.arrivals.len() > self.capacity.max_events || self.bytes > self.capacity.max_bytes
        {
            self.forget_first();
        }
    }

    /// Forgets what came before `at`.
    pub(super) fn forget_before(&mut self, at: Second) {
        while self.arrivals.front().is_some_and(|first| first.at < at) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let Some(first) = self.arrivals.pop_front() else {
            return;
        };
        self.bytes -= cost(&first);
        self.ids.remove(&first.event.event.id);
        let entry = Newest::of(&first);
        for topic in first.event.topics() {
            if let Some(of_topic) = self.topics.get_mut(topic) {
                of_topic.remove(&entry);
                if of_topic.is_empty() {
                    self.topics.remove(topic);
                }
            }
        }
    }

    /// What any of `queries` asks for, newest first.
    pub(super) fn find(&self, queries: &[Query]) -> Vec<Arc<Published>> {
        let found: BTreeSet<Newest> =
            queries.iter().flat_map(|query| self.find_one(query)).collect();
        found.into_iter().filter_map(|entry| entry.event).take(MAX_LIMIT).collect()
    }

    fn find_one(&self, query: &Query) -> impl Iterator<Item = Newest> {
        let newest = Newest::bound(query.until, [0; 32]);
        let oldest = Newest::bound(query.since, [0xff; 32]);
        let mut found = BTreeSet::new();
        // The ends may be the wrong way round: who asks for events to come asks for none of these.
        if newest <= oldest {
            for topic in query.topics() {
                let of_topic = self.topics.get(topic).into_iter();
                let entries = of_topic.flat_map(|set| set.range(&newest..=&oldest));
                let matching = entries.filter(|entry| entry.matches(query));
                found.extend(matching.take(query.limit).cloned());
            }
        }
        found.into_iter().take(query.limit)
    }
}

fn cost(published: &Published) -> usize {
    // Once as JSON, and once as it was read.
    2 * published.event.json.get().len()
        + OVERHEAD_BYTES
        + TOPIC_BYTES * published.event.topics().count()
}

// === impl Newest ===

impl Newest {
    fn of(published: &Arc<Published>) -> Self {
        let event = &published.event.event;
        let at = Reverse(event.created_at.as_secs());
        Self { at, id: event.id, event: Some(Arc::clone(published)) }
    }

    /// An end of a range, which is no event.
    fn bound(at: Second, id: [u8; 32]) -> Self {
        Self { at: Reverse(at), id: EventId::from_byte_array(id), event: None }
    }

    fn matches(&self, query: &Query) -> bool {
        self.event.as_ref().is_some_and(|published| query.matches(&published.event.event))
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
