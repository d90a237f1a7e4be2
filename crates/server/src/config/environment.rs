//! `HEADGATE__SERVER__PORT=9000` is `server.port: 9000`.

use std::collections::BTreeMap;

use super::{
    problem::Problem,
    tree::{Node, Origin, Value},
};

const PREFIX: &str = "HEADGATE__";

/// Puts what the variables say over what the tree has.
pub(super) fn overlay(
    tree: &mut Node,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Vec<Problem> {
    // In order, so that the same environment always gives the same answer.
    let variables: BTreeMap<String, String> = environment.into_iter().collect();
    let set = |(name, text): (String, String)| {
        let key = name.strip_prefix(PREFIX)?.to_ascii_lowercase().replace("__", ".");
        let node = Node { value: Value::Text(text), origin: Origin::Variable(name), quoted: false };
        tree.set(&key, node).err()
    };
    variables.into_iter().filter_map(set).collect()
}
