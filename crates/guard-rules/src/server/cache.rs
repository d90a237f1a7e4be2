//! The rules that were fetched last, in a file.

use std::{fs, io, path::PathBuf};

use tracing::warn;

use super::Fetched;

/// A file with rules and overrides as the server sent them.
#[derive(Clone)]
pub(super) struct Cache {
    path: PathBuf,
}

impl Cache {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the contents of the file; `None` if there are none, or if they are something else.
    pub(super) fn read(&self) -> Option<Fetched> {
        let text = fs::read(&self.path).ok()?;
        Fetched::from_json(serde_json::from_slice(&text).ok()?)
    }

    /// Replaces the file as a whole: a service that is killed meanwhile has the previous one.
    pub(super) fn write(&self, fetched: &Fetched) {
        let next = self.path.with_extension("next");
        let write = || -> io::Result<()> {
            fs::write(&next, serde_json::to_vec(&fetched.to_json())?)?;
            fs::rename(&next, &self.path)
        };
        if let Err(error) = write() {
            warn!(path = %self.path.display(), %error, "cannot cache rules");
        }
    }
}
