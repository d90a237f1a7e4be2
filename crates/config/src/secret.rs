//! Values that are never printed, and that can come from files of their own.

use std::{fmt, path::Path};

use serde::Deserialize;

use crate::{
    problem::Problem,
    schema::Schema,
    text_file,
    tree::{Node, Origin, Value},
};

/// A string that is masked in logs and output.
#[derive(Clone, Deserialize, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the value in clear text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Replaces every `{secret}_file` of `schema` by the secret with the file's contents.
pub(crate) fn resolve(tree: &mut Node, schema: &Schema) -> Vec<Problem> {
    let mut problems: Vec<_> =
        schema.secrets.iter().filter_map(|secret| read(tree, secret).err()).collect();
    let listed = schema.section_lists.iter().filter_map(|list| Some((list.key, list.secret?)));
    for (list, secret) in listed {
        let items = tree.items_mut(list).iter_mut().enumerate();
        let unread: Vec<_> = items
            .filter_map(|(index, item)| {
                read(item, secret).err().map(|problem| problem.within(&format!("{list}[{index}]")))
            })
            .collect();
        if !unread.is_empty() {
            // Otherwise the missing secret would be reported a second time.
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
        // A variable overrides the file, regardless of which of the two keys each of them sets.
        Some((Origin::Variable(_), Origin::File { .. })) => return Ok(()),
        None | Some((Origin::File { .. }, Origin::Variable(_))) => {}
        Some(_) => return Err(problem(format!("set {secret} or {file_key}, not both"))),
    }
    let Value::Text(path) = &node.value else {
        return Err(problem("expected the path of a file".to_owned()));
    };
    let text = text_file::read(Path::new(path))
        .map_err(|error| problem(format!("cannot read {path}: {error}")))?;
    let value = Value::Text(text.trim().to_owned());
    tree.set(secret, Node { value, origin: node.origin.clone(), quoted: true })
}
