//! The descriptor entries that a limit applies to.

use std::{collections::BTreeSet, fmt};

use headgate_config::quoted;

use super::{LimitadorLimit, Unsupported, yaml_string};

/// One entry: its key, and the values that match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryMatcher {
    pub(super) key: String,
    pub(super) value: ValueMatcher,
}

/// The values of an entry that a limit applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueMatcher {
    Exact(String),
    /// Every value, each with a counter of its own.
    Each,
    /// Every value but these.
    AllBut {
        excluded: BTreeSet<String>,
        /// True if each value has a counter of its own; otherwise they share one.
        each: bool,
    },
}

/// A condition on the value of a key.
enum Condition<'a> {
    Equals(&'a str),
    NotEquals(&'a str),
}

/// Value of the `generic_key` of a limit without conditions, variables and name: a descriptor has
/// at least one entry.
const EVERY_REQUEST: &str = "every_request";

/// Returns the entries of `limit`.
pub(super) fn entries(limit: &LimitadorLimit) -> Result<Vec<EntryMatcher>, Unsupported> {
    let mut entries = Vec::new();
    for (index, text) in limit.conditions.iter().enumerate() {
        let unsupported = |message| Unsupported { key: format!(".conditions[{index}]"), message };
        let (key, condition) = parse(text).ok_or_else(|| {
            unsupported(format!(
                "cannot convert {}: files of domains support only key == \"value\" and key != \
                 \"value\". Convert to rules, which support more (--rules), or let Envoy evaluate \
                 it and send a descriptor entry for it",
                quoted(text)
            ))
        })?;
        if !narrow(&mut entries, key, &condition) {
            let message = "contradicts the conditions before it, so the limit applies to no \
                           request: remove the limit";
            return Err(unsupported(message.to_owned()));
        }
    }
    for (index, variable) in limit.variables.iter().enumerate() {
        let key = identifier(variable).ok_or_else(|| Unsupported {
            key: format!(".variables[{index}]"),
            message: format!("{} is not the key of a descriptor entry", quoted(variable)),
        })?;
        count_by(&mut entries, key);
    }
    if entries.is_empty() {
        let has_name = !limit.name.is_empty() && !limit.name.contains('*');
        let value = if has_name { &limit.name } else { EVERY_REQUEST };
        let value = ValueMatcher::Exact(value.to_owned());
        entries.push(EntryMatcher { key: "generic_key".to_owned(), value });
    }
    Ok(entries)
}

/// Adds a condition; returns `false` if no value of the key can meet it.
fn narrow(entries: &mut Vec<EntryMatcher>, key: &str, condition: &Condition<'_>) -> bool {
    use Condition::{Equals, NotEquals};
    use ValueMatcher::{AllBut, Each, Exact};

    let known = entries.iter_mut().find(|entry| entry.key == key);
    match (known.map(|entry| &mut entry.value), condition) {
        (Some(Exact(one)), Equals(value)) => one == value,
        (Some(Exact(one)), NotEquals(value)) => one != value,
        (Some(AllBut { excluded, .. }), Equals(value)) if excluded.contains(*value) => false,
        (Some(matcher), Equals(value)) => {
            *matcher = Exact((*value).to_owned());
            true
        }
        (Some(AllBut { excluded, .. }), NotEquals(value)) => {
            excluded.insert((*value).to_owned());
            true
        }
        (None | Some(Each), condition) => {
            let value = match condition {
                Equals(value) => Exact((*value).to_owned()),
                NotEquals(value) => {
                    AllBut { excluded: BTreeSet::from([(*value).to_owned()]), each: false }
                }
            };
            entries.push(EntryMatcher { key: key.to_owned(), value });
            true
        }
    }
}

/// Adds a variable.
fn count_by(entries: &mut Vec<EntryMatcher>, key: &str) {
    match entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.value) {
        // One value, or a counter for each value already.
        Some(ValueMatcher::Exact(_) | ValueMatcher::Each) => {}
        Some(ValueMatcher::AllBut { each, .. }) => *each = true,
        None => {
            entries.push(EntryMatcher { key: key.to_owned(), value: ValueMatcher::Each });
        }
    }
}

/// Parses `key == "value"` or `key != "value"`, with either kind of quotes or, as in old versions
/// of limitador, none.
fn parse(text: &str) -> Option<(&str, Condition<'_>)> {
    let operator = text.find(['=', '!'])?;
    let (key, rest) = text.split_at(operator);
    let (value, is_equality) = match rest.strip_prefix("==") {
        Some(value) => (value.trim(), true),
        None => (rest.strip_prefix("!=")?.trim(), false),
    };
    let unquoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    // Two keys cannot be compared: the right side is a string.
    let bare = || identifier(value).filter(|_| !value.starts_with("descriptors["));
    let value = unquoted('"').or_else(|| unquoted('\'')).or_else(bare)?;
    // An asterisk would be a wildcard.
    let is_plain = !value.is_empty() && !value.contains(['"', '\'', '\\', '*']);
    let condition =
        if is_equality { Condition::Equals(value) } else { Condition::NotEquals(value) };
    is_plain.then_some((identifier(key)?, condition))
}

/// Returns the key in `key`, `descriptors[0].key` or `descriptors[0]['key']`.
fn identifier(text: &str) -> Option<&str> {
    let text = text.trim();
    let key = match text.strip_prefix("descriptors[0]") {
        Some(rest) => rest.strip_prefix('.').or_else(|| {
            let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
            let unquoted = |quote| inner.strip_prefix(quote)?.strip_suffix(quote);
            unquoted('\'').or_else(|| unquoted('"'))
        })?,
        None => text,
    };
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    (!key.is_empty() && key.bytes().all(is_allowed)).then_some(key)
}

// === impl EntryMatcher ===

impl fmt::Display for EntryMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        match &self.value {
            ValueMatcher::Exact(value) => write!(f, " {}", yaml_string(value)),
            ValueMatcher::Each => Ok(()),
            ValueMatcher::AllBut { excluded, .. } => {
                let excluded: Vec<String> = excluded.iter().map(|it| yaml_string(it)).collect();
                write!(f, " (any but {})", excluded.join(", "))
            }
        }
    }
}

// === impl ValueMatcher ===

impl ValueMatcher {
    /// Returns true if some value matches both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) => one == other,
            (Self::Exact(one), Self::AllBut { excluded, .. })
            | (Self::AllBut { excluded, .. }, Self::Exact(one)) => !excluded.contains(one),
            _ => true,
        }
    }
}
