//! Values by key, each with its origin.

use std::{collections::BTreeMap, fmt, path::Path, sync::Arc};

use crate::problem::Problem;

/// A value and its origin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
    /// `true` if the text was quoted, which makes it a string even if it looks like a number.
    pub(crate) quoted: bool,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Leaves its key at the default, if the key is known.
    Null,
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// Origin of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    #[default]
    Default,
    File {
        path: Arc<Path>,
        line: usize,
    },
    Variable(String),
}

/// A part of a key.
#[derive(Clone, Copy)]
enum Step<'k> {
    Name(&'k str),
    Index(usize),
}

/// Splits a key into its parts.
fn steps(key: &str) -> impl Iterator<Item = Step<'_>> {
    key.split(['.', '[']).filter(|part| !part.is_empty()).map(Step::parse)
}

// === impl Step ===

impl<'k> Step<'k> {
    fn parse(part: &'k str) -> Self {
        let index = part.strip_suffix(']').and_then(|index| index.parse().ok());
        index.map_or(Self::Name(part), Self::Index)
    }
}

// === impl Node ===

impl Node {
    /// Returns the node at `key`, such as `server.port`, `auth.tokens[0].role` or, in a list,
    /// `[0].role`.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        steps(key).try_fold(self, Self::child)
    }

    /// Returns the node at `key`, or else the closest node above it.
    pub(crate) fn closest(&self, key: &str) -> &Self {
        let mut closest = self;
        for step in steps(key) {
            match closest.child(step) {
                Some(child) => closest = child,
                None => break,
            }
        }
        closest
    }

    /// Removes the node at `key`; an item of a list becomes an empty section, so that the others
    /// keep their indexes. Returns `false` if there is nothing to remove.
    pub(crate) fn clear(&mut self, key: &str) -> bool {
        let mut steps: Vec<Step<'_>> = steps(key).collect();
        let Some(last) = steps.pop() else {
            return false;
        };
        let parent = steps.into_iter().try_fold(self, Self::child_mut);
        match (parent.map(|parent| &mut parent.value), last) {
            (Some(Value::Map(entries)), Step::Name(name)) => entries.remove(name).is_some(),
            (Some(Value::List(items)), Step::Index(index)) => {
                let filled = items.get_mut(index).filter(|item| !item.is_empty_section());
                filled.map(|item| item.value = Value::default()).is_some()
            }
            _ => false,
        }
    }

    fn child(&self, step: Step<'_>) -> Option<&Self> {
        match step {
            Step::Name(name) => self.entries()?.get(name),
            Step::Index(index) => self.items().get(index),
        }
    }

    fn child_mut(&mut self, step: Step<'_>) -> Option<&mut Self> {
        match (&mut self.value, step) {
            (Value::Map(entries), Step::Name(name)) => entries.get_mut(name),
            (Value::List(items), Step::Index(index)) => items.get_mut(index),
            _ => None,
        }
    }

    fn is_empty_section(&self) -> bool {
        self.entries().is_some_and(BTreeMap::is_empty)
    }

    /// Returns the items of the list at `key`; none if it is not a list.
    pub(crate) fn items_mut(&mut self, key: &str) -> &mut [Self] {
        let list = key.split('.').try_fold(self, |node, name| node.entries_mut()?.get_mut(name));
        match list.map(|node| &mut node.value) {
            Some(Value::List(items)) => items,
            _ => &mut [],
        }
    }

    /// Removes the node at `key`.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Self> {
        let (parents, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut parents = parents.split('.').filter(|parent| !parent.is_empty());
        let section = parents.try_fold(self, |node, parent| node.entries_mut()?.get_mut(parent))?;
        section.entries_mut()?.remove(name)
    }

    /// Sets the node at `key`, and creates the sections above it.
    pub(crate) fn set(&mut self, key: &str, node: Self) -> Result<(), Problem> {
        let mut section = self;
        let mut names = key.split('.').peekable();
        while let Some(name) = names.next() {
            // `section:` without a value is an empty section.
            if section.is_null() {
                section.value = Value::default();
            }
            let Value::Map(entries) = &mut section.value else {
                let message = "expected a section above this key, found a value";
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

    pub(crate) const fn is_null(&self) -> bool {
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
