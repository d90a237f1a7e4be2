//! Values by key, each with the place it came from.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use super::problem::Problem;

/// A value and where it came from.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
    /// Whether a text stands in quotes, and is a text whatever it looks like.
    pub(super) quoted: bool,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Nothing: it leaves its key at the default, if there is such a key.
    Null,
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// Where a value came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    #[default]
    Default,
    File {
        path: Arc<Path>,
        line: usize,
    },
    Variable(String),
}

// === impl Node ===

impl Node {
    /// The node at `key`, such as `server.port`, `auth.tokens[0].role` or, in a list, `[0].role`.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        key.split('.').try_fold(self, |node, name| {
            let (name, place) = name.split_once('[').unwrap_or((name, ""));
            let node = if name.is_empty() { node } else { node.entries()?.get(name)? };
            match place.trim_end_matches(']') {
                "" => Some(node),
                place => node.items().get(place.parse::<usize>().ok()?),
            }
        })
    }

    /// The items of the list at `key`; none if there is no list.
    pub(super) fn items_mut(&mut self, key: &str) -> &mut [Self] {
        let list = key.split('.').try_fold(self, |node, name| node.entries_mut()?.get_mut(name));
        match list.map(|node| &mut node.value) {
            Some(Value::List(items)) => items,
            _ => &mut [],
        }
    }

    /// Takes the node at `key` out.
    pub(super) fn remove(&mut self, key: &str) -> Option<Self> {
        let (parents, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut parents = parents.split('.').filter(|parent| !parent.is_empty());
        let section = parents.try_fold(self, |node, parent| node.entries_mut()?.get_mut(parent))?;
        section.entries_mut()?.remove(name)
    }

    /// Puts `node` at `key`, making the sections it is in.
    pub(super) fn set(&mut self, key: &str, node: Self) -> Result<(), Problem> {
        let mut section = self;
        let mut names = key.split('.').peekable();
        while let Some(name) = names.next() {
            // A section that says nothing has room for everything.
            if section.is_null() {
                section.value = Value::default();
            }
            let Value::Map(entries) = &mut section.value else {
                let message = "a value was given where a section is expected";
                return Err(Problem::new(key, message).from(&node.origin));
            };
            if names.peek().is_none() {
                entries.insert(name.to_owned(), node);
                break;
            }
            section = entries.entry(name.to_owned()).or_default();
        }
        Ok(())
    }

    /// Whether it says nothing.
    pub(super) const fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    fn entries(&self) -> Option<&BTreeMap<String, Self>> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn entries_mut(&mut self) -> Option<&mut BTreeMap<String, Self>> {
        match &mut self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }
}

// === impl Value ===

impl Default for Value {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

// === impl Origin ===

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
        }
    }
}
