//! Fields of a rule or policy that are set from command-line options.

use clap::Args;
use serde_json::{Map, Value};

use crate::failure::Failure;

/// `--enabled` and `--disabled`.
#[derive(Debug, Args)]
pub(crate) struct EnabledFlags {
    /// Enable it.
    #[arg(long, conflicts_with = "disabled")]
    enabled: bool,
    /// Disable it without deleting it.
    #[arg(long)]
    disabled: bool,
}

impl EnabledFlags {
    /// Returns the value of `enabled`, or `None` if neither flag was given.
    pub(crate) const fn value(&self) -> Option<bool> {
        match (self.enabled, self.disabled) {
            (false, false) => None,
            (enabled, _) => Some(enabled),
        }
    }
}

/// Returns the fields that have a value.
pub(crate) fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let given = |(name, value): (&str, Option<Value>)| Some((name.to_owned(), value?));
    fields.into_iter().filter_map(given).collect()
}

/// Returns the changes of an update: `cleared` fields become null, `given` ones get their values.
///
/// # Errors
///
/// Nothing changes; `command` is the one to get help for.
pub(crate) fn changes(
    cleared: impl IntoIterator<Item = &'static str>,
    given: Map<String, Value>,
    command: &'static str,
) -> Result<Map<String, Value>, Failure> {
    let cleared = cleared.into_iter().map(|name| (name.to_owned(), Value::Null));
    let changes: Map<_, _> = cleared.chain(given).collect();
    if changes.is_empty() { Err(Failure::NoChanges(command)) } else { Ok(changes) }
}
