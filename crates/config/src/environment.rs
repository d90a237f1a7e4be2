//! Environment variables: `{PREFIX}SERVER__PORT=9000` is `server.port: 9000`.

use std::collections::BTreeMap;

use crate::{
    problem::Problem,
    tree::{Node, Origin, Value},
};

/// Sets the keys that variables with `prefix` name.
pub(crate) fn overlay(
    tree: &mut Node,
    prefix: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Vec<Problem> {
    // Sorted, so that the same environment always gives the same result.
    let variables: BTreeMap<String, String> = environment.into_iter().collect();
    let set = |(name, text): (String, String)| {
        let key = name.strip_prefix(prefix)?.to_ascii_lowercase().replace("__", ".");
        let node = Node { value: Value::Text(text), origin: Origin::Variable(name), quoted: false };
        tree.set(&key, node).err()
    };
    variables.into_iter().filter_map(set).collect()
}
