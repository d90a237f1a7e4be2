//! Values that are never shown, and that can come from files of their own.

use std::{fmt, fs};

use serde::Deserialize;

use super::{
    problem::Problem,
    tree::{Node, Origin, Value},
};

/// A text that is never shown.
#[derive(Clone, Deserialize, PartialEq, Eq)]
pub struct Secret(String);

/// What may be given as `{key}_file` too, in every section of a list.
const LISTED: [(&str, &str); 2] = [("auth.tokens", "token"), ("webhooks", "secret")];

/// What may be given as `{key}_file` too.
const SECRETS: [&str; 10] = [
    "database.url",
    "database.password",
    "redis.url",
    "redis.urls",
    "redis.password",
    "redis.ca",
    "redis.cert",
    "redis.key",
    "kafka.username",
    "kafka.password",
];

impl Secret {
    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Puts the contents of every `{secret}_file` in the secret's place.
pub(super) fn resolve(tree: &mut Node) -> Vec<Problem> {
    let mut problems: Vec<_> =
        SECRETS.iter().filter_map(|secret| read(tree, secret).err()).collect();
    for (list, secret) in LISTED {
        let items = tree.items_mut(list).iter_mut().enumerate();
        let unread: Vec<_> = items
            .filter_map(|(place, item)| {
                read(item, secret).err().map(|problem| problem.within(&format!("{list}[{place}]")))
            })
            .collect();
        if !unread.is_empty() {
            // What is missing for this reason is not told again.
            tree.remove(list);
        }
        problems.extend(unread);
    }
    problems
}

fn read(tree: &mut Node, secret: &str) -> Result<(), Problem> {
    let file_key = format!("{secret}_file");
    let Some(node) = tree.remove(&file_key).filter(|node| !node.is_null()) else {
        return Ok(());
    };
    let problem = |message| Problem::new(&file_key, message).from(&node.origin);
    let plain = tree.get(secret).filter(|plain| !plain.is_null());
    match plain.map(|plain| (&plain.origin, &node.origin)) {
        // What the environment says overrides the file, in either form.
        Some((Origin::Variable(_), Origin::File { .. })) => return Ok(()),
        None | Some((Origin::File { .. }, Origin::Variable(_))) => {}
        Some(_) => return Err(problem(format!("set {secret} or {file_key}, not both"))),
    }
    let Value::Text(path) = &node.value else {
        return Err(problem("expected the path of a file".to_owned()));
    };
    let text = fs::read_to_string(path)
        .map_err(|error| problem(format!("cannot read {path}: {error}")))?;
    let value = Value::Text(text.trim().to_owned());
    tree.set(secret, Node { value, origin: node.origin.clone(), quoted: true })
}
