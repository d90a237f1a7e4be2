use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A text, a number, a truth value, or nothing where a key has no default.
    Scalar(serde_json::Value),
    List(Vec<Value>),
    Section(Vec<(&'static str, Value)>),
}

impl Value {
    /// Writes lines that are indented to `depth`, after what stands before them in their first line.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            // JSON is YAML: a text in quotes is never taken for something else.
            Self::Scalar(value) => writeln!(f, "{value}"),
            Self::List(items) => items.iter().try_for_each(|item| {
                indent(f, depth)?;
                f.write_str("- ")?;
                item.write_item(f, depth + 1)
            }),
            Self::Section(entries) => entries.iter().try_for_each(|entry| {
                indent(f, depth)?;
                write_entry(f, entry, depth)
            }),
        }
    }

    /// Writes what follows a dash: a section begins in the same line.
    fn write_item(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let Self::Section(entries) = self else {
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
    (key, value): &(&'static str, Value),
    depth: usize,
) -> fmt::Result {
    match value {
        Value::List(items) if items.is_empty() => return writeln!(f, "{key}: []"),
        Value::List(_) | Value::Section(_) => writeln!(f, "{key}:")?,
        Value::Scalar(_) => write!(f, "{key}: ")?,
    }
    value.write(f, depth + 1)
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(value) => value.serialize(serializer),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Section(entries) => {
                let mut section = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| section.serialize_entry(key, value))?;
                section.end()
            }
        }
    }
}
