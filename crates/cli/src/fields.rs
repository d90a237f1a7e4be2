//! Fields of a rule or policy that are set from command-line options.

use clap::Args;
use serde_json::{Map, Value};

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
