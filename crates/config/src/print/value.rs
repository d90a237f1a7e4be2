use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// Configuration for people and programs: YAML by [`Display`](fmt::Display), JSON by
/// [`Serialize`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed(Value);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    /// A string, a number, a boolean, or null where a key has no value.
    Scalar(serde_json::Value),
    List(Vec<Printed>),
    Section(Vec<(&'static str, Printed)>),
}

impl Printed {
    /// Creates a string, a number, a boolean or null.
    pub fn scalar(value: impl Into<serde_json::Value>) -> Self {
        Self(Value::Scalar(value.into()))
    }

    /// Creates a list.
    pub fn list(items: impl IntoIterator<Item = Self>) -> Self {
        Self(Value::List(items.into_iter().collect()))
    }

    /// Creates a section from its keys, in this order.
    pub fn section(entries: impl IntoIterator<Item = (&'static str, Self)>) -> Self {
        Self(Value::Section(entries.into_iter().collect()))
    }

    /// Writes lines indented to `depth`; the first one continues the line that was begun.
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match &self.0 {
            // JSON is YAML, and a quoted string is never read as anything else.
            Value::Scalar(value) => writeln!(f, "{value}"),
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
        Value::Scalar(_) => write!(f, "{key}: ")?,
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
