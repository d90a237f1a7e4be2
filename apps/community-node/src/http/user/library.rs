//! Where searches look: what the relay keeps.

use std::ops::ControlFlow;

use crate::relay::events::Events;

/// Keeps notes that can be read.
pub(crate) trait Library: Send + Sync {
    /// Shows notes to `reader`, the newest first, until it has seen enough.
    fn read(&self, reader: &mut dyn FnMut(&Note<'_>) -> ControlFlow<()>);
}

/// A note that is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note<'n> {
    /// Its id, as 64 hexadecimal digits.
    pub(crate) id: &'n str,
    /// Who wrote it, as 64 hexadecimal digits.
    pub(crate) pubkey: &'n str,
    /// When, in seconds since the Unix epoch.
    pub(crate) created_at: u64,
    /// What it says.
    pub(crate) content: &'n str,
    /// What it is about.
    pub(crate) topics: &'n [&'n str],
}

/// How many of the newest notes are shown.
const NEWEST: usize = 10_000;

impl Library for Events {
    fn read(&self, reader: &mut dyn FnMut(&Note<'_>) -> ControlFlow<()>) {
        for published in self.newest(NEWEST) {
            let event = &published.event.event;
            let (id, pubkey) = (event.id.to_hex(), event.pubkey.to_hex());
            let topics: Vec<&str> = published.event.topics().collect();
            let note = Note {
                id: &id,
                pubkey: &pubkey,
                created_at: event.created_at.as_secs(),
                content: &event.content,
                topics: &topics,
            };
            if reader(&note).is_break() {
                return;
            }
        }
    }
}
