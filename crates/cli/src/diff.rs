//! The difference between two versions of an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Lists the fields that differ, such as `limit 10 -> 20`.
pub(crate) fn between(before: &Map<String, Value>, after: &Map<String, Value>) -> String {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    // `updated_at` always differs.
    let names = names.into_iter().filter(|name| *name != "updated_at");
    let changes = names.filter_map(|name| {
        let (before, after) = (before.get(name), after.get(name));
        (before != after).then(|| format!("{name} {} -> {}", display(before), display(after)))
    });
    changes.collect::<Vec<_>>().join(", ")
}

fn display(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(other) => other.to_string(),
    }
}
