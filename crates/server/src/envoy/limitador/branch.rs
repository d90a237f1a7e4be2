//! Limits as a tree of descriptors, on its way to a file.

use std::{collections::BTreeMap, fmt::Write as _};

use super::step::{Inexpressible, Step, Values};
use crate::envoy::unit::Unit;

/// A descriptor, and those below it.
#[derive(Default)]
pub(super) struct Branch {
    amount: Option<Amount>,
    below: BTreeMap<Step, Branch>,
}

/// How much a limit allows.
pub(super) struct Amount {
    pub(super) max: u64,
    pub(super) seconds: u64,
    pub(super) name: String,
}

// === impl Branch ===

impl Branch {
    pub(super) fn is_empty(&self) -> bool {
        self.amount.is_none() && self.below.is_empty()
    }

    /// Adds a limit, unless one of its descriptors would be another limit's as well.
    pub(super) fn put(&mut self, steps: &[Step], amount: Amount) -> Result<(), Inexpressible> {
        if self.is_taken(steps) {
            let message = "a descriptor would match this limit and another one, and a descriptor has one limit: \
                           let Envoy send a descriptor for each, with a generic_key that tells them apart, and make \
                           that a condition";
            return Err((String::new(), message.to_owned()));
        }
        let branch =
            steps.iter().fold(self, |branch, step| branch.below.entry(step.clone()).or_default());
        branch.amount = Some(amount);
        Ok(())
    }

    /// Whether another limit has these steps, or takes values of theirs: matching goes down one branch and never back.
    fn is_taken(&self, steps: &[Step]) -> bool {
        let Some((step, rest)) = steps.split_first() else {
            return self.amount.is_some();
        };
        let overlaps = |other: &Step| {
            other != step && other.key == step.key && other.values.overlap(&step.values)
        };
        self.below.keys().any(overlaps)
            || self.below.get(step).is_some_and(|branch| branch.is_taken(rest))
    }

    /// The entries of every limit's descriptors, in words.
    pub(super) fn descriptors(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (step, branch) in &self.below {
            if branch.amount.is_some() {
                all.push(step.to_string());
            }
            let below = branch.descriptors().into_iter();
            all.extend(below.map(|descriptor| format!("{step}, {descriptor}")));
        }
        all
    }

    pub(super) fn write(&self, yaml: &mut String, depth: usize) {
        let indent = "  ".repeat(2 * depth - 1);
        for (step, branch) in &self.below {
            self.write_exclusions(yaml, step, &indent);
            write_entry(yaml, step, &indent);
            if let Some(amount) = &branch.amount {
                amount.write(yaml, &indent);
            }
            if !branch.below.is_empty() {
                line(yaml, &indent, "  descriptors:");
                branch.write(yaml, depth + 1);
            }
        }
    }

    /// Writes the values that a limit is not about, as descriptors without a limit.
    fn write_exclusions(&self, yaml: &mut String, step: &Step, indent: &str) {
        let Values::AllBut { excluded, .. } = &step.values else {
            return;
        };
        for value in excluded {
            let excluded = Step { key: step.key.clone(), values: Values::One(value.clone()) };
            if !self.below.contains_key(&excluded) {
                write_entry(yaml, &excluded, indent);
            }
        }
    }
}

fn write_entry(yaml: &mut String, step: &Step, indent: &str) {
    line(yaml, indent, &format!("- key: {}", quoted(&step.key)));
    match &step.values {
        Values::One(value) => line(yaml, indent, &format!("  value: {}", quoted(value))),
        Values::Each | Values::AllBut { each: true, .. } => {}
        Values::AllBut { each: false, .. } => {
            line(yaml, indent, "  value: \"*\"");
            line(yaml, indent, "  share_threshold: true");
        }
    }
}

// === impl Amount ===

impl Amount {
    fn write(&self, yaml: &mut String, indent: &str) {
        line(yaml, indent, "  rate_limit:");
        if !self.name.is_empty() {
            line(yaml, indent, &format!("    name: {}", quoted(&self.name)));
        }
        let (unit, times) = unit(self.seconds);
        line(yaml, indent, &format!("    unit: {}", unit.name()));
        if times > 1 {
            line(yaml, indent, &format!("    unit_multiplier: {times}"));
        }
        line(yaml, indent, &format!("    requests_per_unit: {}", self.max));
    }
}

fn line(yaml: &mut String, indent: &str, text: &str) {
    // Writing to a text cannot fail.
    let _ = writeln!(yaml, "{indent}{text}");
}

/// The longest unit that divides it, and how often.
fn unit(seconds: u64) -> (Unit, u64) {
    let fits = |unit: &Unit| seconds.is_multiple_of(unit.seconds());
    let unit = Unit::ALL.into_iter().find(fits).unwrap_or(Unit::Second);
    (unit, seconds / unit.seconds())
}

/// A text in quotes: JSON's are YAML's.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
