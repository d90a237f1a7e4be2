//! The rules that were fetched last, in a file.

use std::{fs, io, path::PathBuf};

use headgate_ratelimit::{RuleId, RuleSpec};
use serde_json::{Map, Value as Json};
use tracing::warn;

use super::rule;

/// A file with rules as the server sent them.
#[derive(Clone)]
pub(super) struct Cache {
    path: PathBuf,
}

impl Cache {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the rules of the file; `None` if there are none, or if they are invalid.
    pub(super) fn read(&self) -> Option<Vec<(RuleId, RuleSpec)>> {
        let text = fs::read(&self.path).ok()?;
        let rules: Vec<Map<String, Json>> = serde_json::from_slice(&text).ok()?;
        rules.iter().map(|fields| rule(fields).ok()).collect()
    }

    /// Replaces the file as a whole: a service that is killed meanwhile has the previous one.
    pub(super) fn write(&self, rules: &[Map<String, Json>]) {
        let next = self.path.with_extension("next");
        let write = || -> io::Result<()> {
            fs::write(&next, serde_json::to_vec(rules)?)?;
            fs::rename(&next, &self.path)
        };
        if let Err(error) = write() {
            warn!(path = %self.path.display(), %error, "cannot cache rules");
        }
    }
}
