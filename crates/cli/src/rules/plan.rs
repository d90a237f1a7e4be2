//! What `apply` changes, as the server says it.

use std::io::{self, Write};

use headgate_ratelimit::Window;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::rule::{Rule, Spec};
use crate::change;

/// What changes so that the rules are those of a list.
#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    created: Vec<Spec>,
    updated: Vec<Updated>,
    deleted: Vec<Rule>,
    unchanged: u64,
    #[serde(default)]
    applied: bool,
    /// Which rules it was made for; servers of older versions do not say.
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

    /// How many rules are removed.
    pub(super) const fn deletions(&self) -> usize {
        self.deleted.len()
    }

    /// The difference, a line for each rule.
    pub(super) fn lines(&self) -> Vec<String> {
        let created = self.created.iter().map(|spec| format!("+ {spec}"));
        let updated = self.updated.iter().map(|updated| format!("~ {}", updated.line()));
        let deleted = self.deleted.iter().map(|rule| format!("- {}", rule.spec));
        created.chain(updated).chain(deleted).collect()
    }

    /// How many rules change, or have changed.
    pub(super) fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { created, updated, deleted, unchanged, .. } = self;
        let (created, updated, deleted) = (created.len(), updated.len(), deleted.len());
        if self.is_empty() {
            writeln!(out, "nothing to change ({unchanged} unchanged)")
        } else if self.applied {
            let done = format!("{created} created, {updated} updated, {deleted} deleted");
            writeln!(out, "{done}, {unchanged} unchanged")
        } else {
            let wanted = format!("{created} to create, {updated} to update, {deleted} to delete");
            writeln!(out, "{wanted}, {unchanged} unchanged (dry run: nothing was changed)")
        }
    }
}

// === impl Updated ===

impl Updated {
    /// The rule by what makes it another than all others, and what is different.
    fn line(&self) -> String {
        let text = |name| self.after.get(name).and_then(Value::as_str).unwrap_or_default();
        let window = self.after.get("window_seconds").and_then(Value::as_u64).unwrap_or_default();
        let (scope, pattern) = (text("scope"), text("identifier_pattern"));
        let changes = change::between(&self.before, &self.after);
        format!("{scope}:{pattern} {}: {changes}", Window::from_secs(window))
    }
}
