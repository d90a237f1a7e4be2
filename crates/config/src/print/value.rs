use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// Configuration for people and programs: YAML by [`Display`](fmt::Display), JSON by
/// [`Serialize`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed(Value);

/// A key whose value changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key, such as `server.port`.
    pub key: String,
    /// The value before, with secrets masked.
    pub old: Printed,
    /// The value after, with secrets masked.
    pub new: Printed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// A string, a number, a boolean, or null where a key has no value.
    Scalar(serde_json::Value),
    /// A value that is not shown in full, and a keyed hash of it, which differs if it changes.
    Masked {
        shown: String,
        hash: u64,
    },
    List(Vec<Printed>),
    Section(Vec<(&'static str, Printed)>),
}

impl Printed {
    /// Creates a string, a number, a boolean or null.
    pub fn scalar(value: impl Into<serde_json::Value>) -> Self {
        Self(Value::Scalar(value.into()))
    }

    /// Creates a string that is shown instead of `value`, which may hold a secret. Two of them are
    /// equal only if their values are, within one process.
    pub fn masked(shown: impl Into<String>, value: &str) -> Self {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        let hash = KEY.get_or_init(RandomState::new).hash_one(value);
        Self(Value::Masked { shown: shown.into(), hash })
    }

    /// Creates a list.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(Value::List(items.into_iter().collect()))
    }

    /// Creates a section from its keys, in this order.
    pub fn section(entries: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self(Value::Section(entries.into_iter().collect()))
    }

    /// Returns the keys whose values differ in `new`, in the order in which they are printed. A list
    /// is compared as a whole.
    pub fn changes(&self, new: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        self.collect_changes(new, "", &mut changes);
        changes
    }

    fn collect_changes(&self, new: &Self, key: &str, changes: &mut Vec<Change>) {
        match (&self.0, &new.0) {
            (Value::Section(before), Value::Section(after)) => {
                // Both were printed by the same code: they have the same keys.
                for ((name, before), (_, after)) in before.iter().zip(after) {
                    before.collect_changes(after, &below(key, name), changes);
                }
            }
            _ if self != new => {
                let key = key.to_owned();
                changes.push(Change { key, old: self.clone(), new: new.clone() });
            }
            _ => {}
        }
    }

    /// Returns the keys of all values, in the order in which they are printed.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        self.collect_keys("", &mut keys);
        keys
    }

    fn collect_keys(&self, key: &str, keys: &mut Vec<String>) {
        match &self.0 {
            Value::Section(entries) => {
                for (name, value) in entries {
                    value.collect_keys(&below(key, name), keys);
                }
            }
            _ => keys.push(key.to_owned()),
        }
    }

    /// Returns the value at `key`.
    pub fn get(&self, key: &str) -> Option<&Self> {
        key.split('.').try_fold(self, |value, name| match &value.0 {
            Value::Section(entries) => {
                entries.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
            }
            _ => None,
        })
    }

    /// Writes lines indented to `depth`; the first one continues the line that was begun.
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match &self.0 {
            // JSON is YAML, and a quoted string is never read as anything else.
            Value::Scalar(value) => writeln!(f, "{value}"),
            Value::Masked { shown, .. } => writeln!(f, "{}", serde_json::Value::from(&**shown)),
            Value::List(items) => items.iter().try_for_each(|item| {
                indent(f, depth)?;
                f.write_str("- ")?;
                item.write_item(f, depth + 1)
            }),
            Value::Section(entries) => entries.iter().try_for_each(|entry| {
                indent(f, depth)?;
                write_entry(f, entry, depth)
            }),
        }
    }

    /// Writes what follows a dash: a section begins in the same line.
    fn write_item(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let Value::Section(entries) = &self.0 else {
            return self.write(f, depth);
        };
        entries.iter().enumerate().try_for_each(|(i, entry)| {
            indent(f, if i == 0 { 0 } else { depth })?;
            write_entry(f, entry, depth)
        })
    }
}

/// Returns the key `name` of the section `key`.
fn below(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

fn indent(f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| f.write_str("  "))
}

fn write_entry(
    f: &mut fmt::Formatter<'_>,
    (key, value): &(&'static str, Printed),
    depth: usize,
) -> fmt::Result {
    match &value.0 {
        Value::List(items) if items.is_empty() => return writeln!(f, "{key}: []"),
        Value::List(_) | Value::Section(_) => writeln!(f, "{key}:")?,
        Value::Scalar(_) | Value::Masked { .. } => write!(f, "{key}: ")?,
    }
    value.write(f, depth + 1)
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Serialize for Printed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Scalar(value) => value.serialize(serializer),
            Value::Masked { shown, .. } => serializer.serialize_str(shown),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Value::Section(entries) => {
                let mut section = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| section.serialize_entry(key, value))?;
                section.end()
            }
        }
    }
}
