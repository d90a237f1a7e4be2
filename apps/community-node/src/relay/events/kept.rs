//! What is kept of the events, found by topic and time.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque, btree_set},
    mem::size_of,
    ops::Bound,
    sync::Arc,
};

use nostr::event::EventId;

use super::{
    Capacity, Published,
    passed::Passed,
    walk::{Stretch, Walk},
};
use crate::relay::{footprint, second::Second};

/// The least number of topics that there is always room for.
const FEW_TOPICS: usize = 1_024;

/// Events in the order in which they came, and by topic newest first.
#[derive(Debug)]
pub(super) struct Kept {
    arrivals: VecDeque<Arc<Published>>,
    ids: HashSet<EventId>,
    passed: Passed,
    topics: HashMap<Box<str>, BTreeSet<Newest>>,
    capacity: Capacity,
    bytes: usize,
    last_number: u64,
}

/// An event that comes before older ones, and before later ids of the same second.
#[derive(Clone, Debug)]
pub(super) struct Newest {
    at: Reverse<Second>,
    id: EventId,
    event: Option<Arc<Published>>,
}

/// Entries of one topic, newest first.
type Entries<'k> = btree_set::Range<'k, Newest>;

// === impl Kept ===

impl Kept {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            arrivals: VecDeque::new(),
            ids: HashSet::new(),
            passed: Passed::default(),
            topics: HashMap::new(),
            capacity,
            bytes: 0,
            last_number: 0,
        }
    }

    pub(super) fn contains(&self, id: &EventId) -> bool {
        self.ids.contains(id) || self.passed.contains(id)
    }

    /// Remembers that an event came which is not kept.
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

    /// At most `limit` events, those that came last first.
    pub(super) fn newest(&self, limit: usize) -> Vec<Arc<Published>> {
        self.arrivals.iter().rev().take(limit).cloned().collect()
    }

    pub(super) fn keep(&mut self, published: Arc<Published>) {
        self.bytes += cost(&published);
        self.ids.insert(published.event.event.id);
        for topic in published.event.topics() {
            if !self.topics.contains_key(topic) {
                self.bytes += topic_cost(topic);
                self.topics.insert(topic.into(), BTreeSet::new());
            }
            if let Some(of_topic) = self.topics.get_mut(topic) {
                of_topic.insert(Newest::of(&published));
            }
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
                    self.bytes -= topic_cost(topic);
                }
            }
        }
        // A table gives nothing back by itself.
        if self.topics.capacity() / 4 > self.topics.len().max(FEW_TOPICS) {
            self.topics.shrink_to(2 * self.topics.len());
        }
    }

    /// The next events of a walk, newest first, each once.
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
            // An event of several topics comes once for each of them.
            if last != Some(entry) {
                seen.extend(entry.event.clone());
                last = Some(entry);
            }
            heads.extend(entries[of].next().map(|next| Reverse((next, of))));
        }
        walk.advance(visited, last.map(Newest::place));
        seen
    }

    /// What a walk has not yet seen of one stretch.
    fn rest<'k>(&'k self, stretch: &Stretch<'_>, walk: &Walk<'_>) -> Option<Entries<'k>> {
        let last = walk.last.as_ref().filter(|last| **last >= stretch.newest);
        // The ends may be the wrong way round, and the walk may be past them.
        if *last.unwrap_or(&stretch.newest) >= stretch.oldest {
            return None;
        }
        let first = last.map_or(Bound::Included(&stretch.newest), Bound::Excluded);
        let of_topic = self.topics.get(stretch.topic)?;
        Some(of_topic.range((first, Bound::Included(&stretch.oldest))))
    }
}

/// What an event takes in memory: itself, and its places among the others.
fn cost(published: &Published) -> usize {
    footprint::list::<Published>(1)
        + 2 * size_of::<Arc<Published>>()
        + footprint::slot::<EventId>()
        + footprint::leaf::<Newest>() * published.event.topics().count()
        + published.event.footprint()
}

/// What a topic takes in memory, however many events are about it.
fn topic_cost(topic: &str) -> usize {
    footprint::slot::<(Box<str>, BTreeSet<Newest>)>()
        + footprint::text(topic)
        + footprint::tree::<Newest>(1)
}

// === impl Newest ===

impl Newest {
    fn of(published: &Arc<Published>) -> Self {
        let event = &published.event.event;
        let at = Reverse(event.created_at.as_secs());
        Self { at, id: event.id, event: Some(Arc::clone(published)) }
    }

    /// An end of a range, which is no event.
    pub(super) fn bound(at: Second, id: [u8; 32]) -> Self {
        Self { at: Reverse(at), id: EventId::from_byte_array(id), event: None }
    }

    /// Where it is, without the event itself.
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
