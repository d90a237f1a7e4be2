//! The changes that `apply` makes, as the server reports them.

use std::io::{self, Write};

use headgate_ratelimit::Window;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::rule::{Rule, Spec};
use crate::diff;

/// The difference between the stored rules and a list.
#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    created: Vec<Spec>,
    updated: Vec<Updated>,
    deleted: Vec<Rule>,
    unchanged: u64,
    #[serde(default)]
    applied: bool,
    /// Revision of the rules it was computed for; servers of older versions send none.
    pub(super) revision: Option<i64>,
}

#[derive(Debug, Deserialize)]
struct Updated {
    before: Map<String, Value>,
    after: Map<String, Value>,
}

// === impl Plan ===

impl Plan {
    pub(super) const fn is_empty(&self) -> bool {
        self.created.is_empty() && self.updated.is_empty() && self.deleted.is_empty()
    }

    /// Number of rules to delete.
    pub(super) const fn deletions(&self) -> usize {
        self.deleted.len()
    }

    /// The difference, one line per rule.
    pub(super) fn lines(&self) -> Vec<String> {
        let created = self.created.iter().map(|spec| format!("+ {spec}"));
        let updated = self.updated.iter().map(|updated| format!("~ {}", updated.line()));
        let deleted = self.deleted.iter().map(|rule| format!("- {}", rule.spec));
        created.chain(updated).chain(deleted).collect()
    }

    /// Writes how many rules change, or have changed.
    pub(super) fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { created, updated, deleted, unchanged, .. } = self;
        let (created, updated, deleted) = (created.len(), updated.len(), deleted.len());
        if self.is_empty() {
            writeln!(out, "nothing to change ({unchanged} unchanged)")
        } else if self.applied {
            let done = format!("{created} created, {updated} updated, {deleted} deleted");
            writeln!(out, "{done}, {unchanged} unchanged")
        } else {
            let planned = format!("{created} to create, {updated} to update, {deleted} to delete");
            writeln!(out, "{planned}, {unchanged} unchanged (dry run: nothing was changed)")
        }
    }
}

// === impl Updated ===

impl Updated {
    /// The identity of the rule and its changed fields.
    fn line(&self) -> String {
        let text = |name| self.after.get(name).and_then(Value::as_str).unwrap_or_default();
        let window = self.after.get("window_seconds").and_then(Value::as_u64).unwrap_or_default();
        let (scope, pattern) = (text("scope"), text("identifier_pattern"));
        let changes = diff::between(&self.before, &self.after);
        format!("{scope}:{pattern} {}: {changes}", Window::from_secs(window))
    }
}
