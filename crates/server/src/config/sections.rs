//! Lists of sections in variables, which know only text.

use super::{
    problem::Problem,
    tree::{Node, Value},
    yaml,
};

/// The lists, each with what one looks like.
const LISTS: [(&str, &str); 3] = [
    ("auth.tokens", "[{name: ci, role: sys_operator, token_file: /run/secrets/ci}]"),
    (
        "rate_limiter.overrides",
        "[{prefix: 'api_key:', token_bucket: {capacity: 1000, refill_rate: 100}}]",
    ),
    ("webhooks", "[{url: 'https://alerts.example/quota', secret_file: /run/secrets/webhook}]"),
];

/// Reads as YAML what a variable says of a list of sections.
pub(super) fn spell_out(tree: &mut Node) -> Vec<Problem> {
    LISTS.iter().filter_map(|(key, example)| read(tree, key, example)).collect()
}

fn read(tree: &mut Node, key: &str, example: &str) -> Option<Problem> {
    let node = tree.get(key)?;
    let Value::Text(text) = &node.value else {
        return None;
    };
    let origin = node.origin.clone();
    match yaml::read_value(text, &origin) {
        Some(list) if matches!(list.value, Value::List(_)) => tree.set(key, list).err(),
        _ => {
            tree.remove(key);
            let message = format!("expected a list such as {example}");
            Some(Problem::new(key, message).from(&origin))
        }
    }
}
