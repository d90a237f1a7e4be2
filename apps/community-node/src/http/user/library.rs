//! The notes that searches scan: the relay's stored events.

use std::ops::ControlFlow;

use nostr::key::PublicKey;
use serde_json::{Value, json};

use crate::relay::{event::VerifiedEvent, events::Events, second::Second};

/// A store of notes.
pub(crate) trait Library: Send + Sync {
    /// Calls `reader` with the notes of `now`, the newest first, until it has enough.
    fn read(&self, now: Second, reader: &mut dyn FnMut(Note<'_>) -> ControlFlow<()>);
}

/// A stored note.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'n>(&'n VerifiedEvent);

/// Maximum number of notes in a scan.
const NEWEST: usize = 10_000;

// === impl Note ===

impl<'n> Note<'n> {
    /// Its author.
    pub(crate) fn author(self) -> &'n PublicKey {
        self.0.author()
    }

    /// Its text, in lower case.
    pub(crate) fn lowercase(self) -> &'n str {
        self.0.lowercase()
    }

    /// Its topics.
    pub(crate) fn topics(self) -> impl Iterator<Item = &'n str> {
        self.0.topics()
    }

    /// JSON of the note in responses.
    pub(crate) fn shown(self) -> Value {
        let event = &self.0.event;
        json!({
            "id": event.id.to_hex(),
            "pubkey": event.pubkey.to_hex(),
            "created_at": event.created_at.as_secs(),
            "content": event.content,
            "topics": self.topics().collect::<Vec<_>>(),
        })
    }
}

impl Library for Events {
    fn read(&self, now: Second, reader: &mut dyn FnMut(Note<'_>) -> ControlFlow<()>) {
        for published in self.newest(NEWEST) {
            if !published.event.is_expired(now) && reader(Note(&published.event)).is_break() {
                return;
            }
        }
    }
}
