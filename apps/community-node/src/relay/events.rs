//! Stored events, and the broadcast of new ones.
//!
//! Events are stored in memory, bounded by number, size and age, and evicted first in, first out: a
//! flood evicts old events, but never grows the memory. Newer events replace older ones at the same
//! address, authors delete theirs, and some expire. All are lost with the process; neighbours send
//! new events only.

mod deletions;
mod forwarded;
mod stored;
mod walk;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nostr::event::EventId;
use tokio::{sync::broadcast, task};

use self::{stored::StoredEvents, walk::Walk};
use super::{event::VerifiedEvent, filter::Query, second::Second};

/// Maximum number of events that a reader may be behind.
const LIVE_EVENTS: usize = 1_024;

/// A published event with its sequence number.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) event: VerifiedEvent,
    pub(crate) number: u64,
    pub(crate) source: Source,
    /// Time at which it was received.
    at: Second,
    /// Topics of the events that it deleted here.
    pub(crate) deleted_topics: Box<[Box<str>]>,
}

/// Origin of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A client of this relay.
    Client,
    /// Another node.
    Gossip,
}

/// Bounds of the stored events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) max_events: usize,
    pub(crate) max_bytes: usize,
}

/// Outcome of publishing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publication {
    New,
    Duplicate,
    /// A newer event is at its address.
    Outdated,
    /// Its author has deleted it.
    Deleted,
}

/// Stored events that match a subscription.
#[derive(Debug)]
pub(crate) struct Backfill {
    /// Newest first.
    pub(crate) events: Vec<Arc<Published>>,
    /// Later events have greater sequence numbers.
    pub(crate) up_to: u64,
}

/// Events of the relay.
#[derive(Debug)]
pub(crate) struct Events {
    kept: Mutex<StoredEvents>,
    live: broadcast::Sender<Arc<Published>>,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let (live, _) = broadcast::channel(LIVE_EVENTS);
        Self { kept: Mutex::new(StoredEvents::new(capacity)), live }
    }

    /// Stores an event and broadcasts it.
    pub(crate) fn publish(
        &self,
        event: VerifiedEvent,
        source: Source,
        at: Second,
        max_age: Second,
    ) -> Publication {
        let mut kept = self.kept();
        kept.forget_before(at.saturating_sub(max_age));
        kept.forget_expired(at);
        if kept.contains(&event.event.id) {
            return Publication::Duplicate;
        }
        if kept.has_deleted(&event) {
            return Publication::Deleted;
        }
        if kept.has_newer(&event) {
            return Publication::Outdated;
        }
        let deleted_topics = kept.delete(&event);
        let number = kept.next_number();
        let published = Arc::new(Published { event, number, source, at, deleted_topics });
        if published.event.is_ephemeral() {
            kept.pass(&published);
        } else {
            kept.keep(Arc::clone(&published));
        }
        // Under the lock, so that the broadcast is in sequence. It fails only without receivers.
        let _ = self.live.send(published);
        Publication::New
    }

    /// Returns true if an event is a duplicate.
    pub(crate) fn contains(&self, id: &EventId) -> bool {
        self.kept().contains(id)
    }

    /// Returns the events stored at `now` that match any of `queries` and that `is_shown`.
    pub(crate) async fn backfill(
        &self,
        queries: &[Query],
        now: Second,
        is_shown: impl Fn(&VerifiedEvent) -> bool,
    ) -> Backfill {
        let up_to = self.kept().last_number();
        let mut walk = Walk::new(queries, up_to, now);
        while self.step(&mut walk, &is_shown) {
            // Yields between two steps.
            task::yield_now().await;
        }
        Backfill { events: walk.found(), up_to }
    }

    fn step(&self, walk: &mut Walk<'_>, is_shown: impl Fn(&VerifiedEvent) -> bool) -> bool {
        // The lock is released before events are compared.
        let seen = self.kept().step(walk);
        walk.take(seen, is_shown)
    }

    /// Returns at most `limit` stored events, the latest received first.
    pub(crate) fn newest(&self, limit: usize) -> Vec<Arc<Published>> {
        self.kept().newest(limit)
    }

    /// Subscribes to new events.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Published>> {
        self.live.subscribe()
    }

    fn kept(&self) -> MutexGuard<'_, StoredEvents> {
        // A panic elsewhere leaves the state consistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
