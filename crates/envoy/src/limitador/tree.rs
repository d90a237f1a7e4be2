//! Converted limits as a tree of descriptors.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    Unsupported,
    entry::{EntryMatcher, ValueMatcher},
    yaml_string,
};
use crate::Unit;

/// A descriptor, and those nested below.
#[derive(Default)]
pub(super) struct DescriptorTree {
    amount: Option<LimitAmount>,
    below: BTreeMap<EntryMatcher, DescriptorTree>,
}

/// Maximum and window of a limit.
pub(super) struct LimitAmount {
    pub(super) max: u64,
    pub(super) seconds: u64,
    pub(super) name: String,
}

// === impl DescriptorTree ===

impl DescriptorTree {
    pub(super) fn is_empty(&self) -> bool {
        self.amount.is_none() && self.below.is_empty()
    }

    /// Adds a limit, unless a descriptor would match another limit as well.
    pub(super) fn insert(
        &mut self,
        entries: &[EntryMatcher],
        amount: LimitAmount,
    ) -> Result<(), Unsupported> {
        if self.overlaps(entries) {
            let message = "a descriptor would match this limit and another one, but a descriptor \
                           has one limit: convert to rules, of which several may apply (--rules), \
                           or let Envoy send a descriptor for each, with a different generic_key, \
                           and add that as a condition";
            return Err(Unsupported { key: String::new(), message: message.to_owned() });
        }
        let leaf =
            entries.iter().fold(self, |tree, entry| tree.below.entry(entry.clone()).or_default());
        leaf.amount = Some(amount);
        Ok(())
    }

    /// Returns true if another limit has the same entries, or matches some of the same values:
    /// matching follows one branch and does not backtrack.
    fn overlaps(&self, entries: &[EntryMatcher]) -> bool {
        let Some((entry, rest)) = entries.split_first() else {
            return self.amount.is_some();
        };
        let overlaps = |other: &EntryMatcher| {
            other != entry && other.key == entry.key && other.value.overlaps(&entry.value)
        };
        self.below.keys().any(overlaps)
            || self.below.get(entry).is_some_and(|tree| tree.overlaps(rest))
    }

    /// The entries of the descriptors of every limit, for people.
    pub(super) fn descriptors(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (entry, tree) in &self.below {
            if tree.amount.is_some() {
                all.push(entry.to_string());
            }
            let below = tree.descriptors().into_iter();
            all.extend(below.map(|descriptor| format!("{entry}, {descriptor}")));
        }
        all
    }

    pub(super) fn write(&self, yaml: &mut String, depth: usize) {
        let indent = "  ".repeat(2 * depth - 1);
        for (entry, tree) in &self.below {
            self.write_exclusions(yaml, entry, &indent);
            write_entry(yaml, entry, &indent);
            if let Some(amount) = &tree.amount {
                amount.write(yaml, &indent);
            }
            if !tree.below.is_empty() {
                write_line(yaml, &indent, "  descriptors:");
                tree.write(yaml, depth + 1);
            }
        }
    }

    /// Writes the values that a limit excludes, as descriptors without a limit.
    fn write_exclusions(&self, yaml: &mut String, entry: &EntryMatcher, indent: &str) {
        let ValueMatcher::AllBut { excluded, .. } = &entry.value else {
            return;
        };
        for value in excluded {
            let value = ValueMatcher::Exact(value.clone());
            let excluded = EntryMatcher { key: entry.key.clone(), value };
            if !self.below.contains_key(&excluded) {
                write_entry(yaml, &excluded, indent);
            }
        }
    }
}

fn write_entry(yaml: &mut String, entry: &EntryMatcher, indent: &str) {
    write_line(yaml, indent, &format!("- key: {}", yaml_string(&entry.key)));
    match &entry.value {
        ValueMatcher::Exact(value) => {
            write_line(yaml, indent, &format!("  value: {}", yaml_string(value)));
        }
        ValueMatcher::Each | ValueMatcher::AllBut { each: true, .. } => {}
        ValueMatcher::AllBut { each: false, .. } => {
            write_line(yaml, indent, "  value: \"*\"");
            write_line(yaml, indent, "  share_threshold: true");
        }
    }
}

// === impl LimitAmount ===

impl LimitAmount {
    fn write(&self, yaml: &mut String, indent: &str) {
        write_line(yaml, indent, "  rate_limit:");
        if !self.name.is_empty() {
            write_line(yaml, indent, &format!("    name: {}", yaml_string(&self.name)));
        }
        let (unit, multiplier) = unit(self.seconds);
        write_line(yaml, indent, &format!("    unit: {}", unit.name()));
        if multiplier > 1 {
            write_line(yaml, indent, &format!("    unit_multiplier: {multiplier}"));
        }
        write_line(yaml, indent, &format!("    requests_per_unit: {}", self.max));
    }
}

fn write_line(yaml: &mut String, indent: &str, text: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(yaml, "{indent}{text}");
}

/// Returns the longest unit that divides `seconds`, and the number of units.
fn unit(seconds: u64) -> (Unit, u64) {
    let divides = |unit: &Unit| seconds.is_multiple_of(unit.seconds());
    let unit = Unit::ALL.into_iter().find(divides).unwrap_or(Unit::Second);
    (unit, seconds / unit.seconds())
}
