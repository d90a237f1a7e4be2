//! Lists of sections in environment variables.

use crate::{
    problem::Problem,
    tree::{Node, Value},
    yaml,
};

/// A key that holds a list of sections. An environment variable sets it as YAML.
#[derive(Clone, Copy, Debug)]
pub struct SectionList {
    /// Key of the list, such as `webhooks`.
    pub key: &'static str,
    /// A list that is valid, for error messages.
    pub example: &'static str,
    /// Key within each section that can also be given as `{key}_file`.
    pub secret: Option<&'static str>,
}

/// Parses the value of a variable as YAML if its key is one of `lists`.
pub(crate) fn parse_variables(tree: &mut Node, lists: &[SectionList]) -> Vec<Problem> {
    lists.iter().filter_map(|list| parse(tree, list)).collect()
}

fn parse(tree: &mut Node, SectionList { key, example, .. }: &SectionList) -> Option<Problem> {
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
            Some(Problem::new(*key, message).from(&origin))
        }
    }
}
