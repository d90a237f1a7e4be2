//! The events of the relay: those that are kept, and who hears of new ones.
//!
//! Events are kept in memory, within a number, a size and an age, and the first to come are
//! the first to go: a flood can push out what is old, but never grow the memory. Newer events take the
//! place of older ones at the same address, authors delete theirs, and some expire. All
//! are lost with the process; a node that is told of them by its neighbours hears of new ones only.

mod deletions;
mod kept;
mod passed;
mod walk;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nostr::event::EventId;
use tokio::{sync::broadcast, task};

use self::{kept::Kept, walk::Walk};
use super::{event::VerifiedEvent, filter::Query, second::Second};

/// How many events a reader may be behind before it misses some.
const LIVE_EVENTS: usize = 1_024;

/// An event with its place among all that were published here.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) event: VerifiedEvent,
    pub(crate) number: u64,
    pub(crate) source: Source,
    /// When it came.
    at: Second,
    /// What the events were about that it deleted here.
    pub(crate) deleted_topics: Box<[Box<str>]>,
}

/// How an event came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// From a client of this relay.
    Client,
    /// From another node.
    Gossip,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) max_events: usize,
    pub(crate) max_bytes: usize,
}

/// What became of an event that was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publication {
    New,
    Duplicate,
    /// A newer event has its place.
    Outdated,
    /// Its author has deleted it.
    Deleted,
}

/// What is kept of the events that somebody asked for.
#[derive(Debug)]
pub(crate) struct Backfill {
    /// Newest first.
    pub(crate) events: Vec<Arc<Published>>,
    /// What is published later has a greater number.
    pub(crate) up_to: u64,
}

/// The events of the relay.
#[derive(Debug)]
pub(crate) struct Events {
    kept: Mutex<Kept>,
    live: broadcast::Sender<Arc<Published>>,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(capacity: Capacity) -> Self {
        let (live, _) = broadcast::channel(LIVE_EVENTS);
        Self { kept: Mutex::new(Kept::new(capacity)), live }
    }

    /// Keeps an event, and tells everybody who listens.
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
        // Under the lock, so that everybody hears of events in the order of their numbers.
        // Nobody listens: nobody misses anything.
        let _ = self.live.send(published);
        Publication::New
    }

    /// Whether an event came before.
    pub(crate) fn contains(&self, id: &EventId) -> bool {
        self.kept().contains(id)
    }

    /// What is kept at `now` of the events that any of `queries` asks for, and that `is_shown`.
    pub(crate) async fn backfill(
        &self,
        queries: &[Query],
        now: Second,
        is_shown: impl Fn(&VerifiedEvent) -> bool,
    ) -> Backfill {
        let up_to = self.kept().last_number();
        let mut walk = Walk::new(queries, up_to, now);
        while self.step(&mut walk, &is_shown) {
            // Others have their turn between two steps.
            task::yield_now().await;
        }
        Backfill { events: walk.found(), up_to }
    }

    fn step(&self, walk: &mut Walk<'_>, is_shown: impl Fn(&VerifiedEvent) -> bool) -> bool {
        // The lock is let go before anything is compared.
        let seen = self.kept().step(walk);
        walk.take(seen, is_shown)
    }

    /// At most `limit` events that are kept, those that came last first.
    pub(crate) fn newest(&self, limit: usize) -> Vec<Arc<Published>> {
        self.kept().newest(limit)
    }

    /// Events from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Published>> {
        self.live.subscribe()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic elsewhere leaves nothing half done that would matter here.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
