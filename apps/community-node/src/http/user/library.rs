//! Where searches look: what the relay keeps.

use std::ops::ControlFlow;

use nostr::key::PublicKey;
use serde_json::{Value, json};

use crate::relay::{event::VerifiedEvent, events::Events, second::Second};

/// Keeps notes that can be read.
pub(crate) trait Library: Send + Sync {
    /// Shows the notes of `now` to `reader`, the newest first, until it has seen enough.
    fn read(&self, now: Second, reader: &mut dyn FnMut(Note<'_>) -> ControlFlow<()>);
}

/// A note that is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'n>(&'n VerifiedEvent);

/// How many of the newest notes are shown.
const NEWEST: usize = 10_000;

// === impl Note ===

impl<'n> Note<'n> {
    /// Who wrote it.
    pub(crate) fn author(self) -> &'n PublicKey {
        self.0.author()
    }

    /// What it says, in lower case.
    pub(crate) fn lowercase(self) -> &'n str {
        self.0.lowercase()
    }

    /// What it is about.
    pub(crate) fn topics(self) -> impl Iterator<Item = &'n str> {
        self.0.topics()
    }

    /// The note as it is answered.
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
