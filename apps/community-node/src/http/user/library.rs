//! Where searches look.

use std::ops::ControlFlow;

/// Keeps notes that can be read.
pub trait Library: Send + Sync {
    /// Shows notes to `reader`, the newest first, until it has seen enough.
    fn read(&self, reader: &mut dyn FnMut(&Note<'_>) -> ControlFlow<()>);
}

/// A note that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Note<'n> {
    /// Its id, as 64 hexadecimal digits.
    pub id: &'n str,
    /// Who wrote it, as 64 hexadecimal digits.
    pub pubkey: &'n str,
    /// When, in seconds since the Unix epoch.
    pub created_at: u64,
    /// What it says.
    pub content: &'n str,
    /// What it is about.
    pub topics: &'n [&'n str],
}

/// No notes at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLibrary;

impl Library for NoLibrary {
    fn read(&self, _: &mut dyn FnMut(&Note<'_>) -> ControlFlow<()>) {}
}
