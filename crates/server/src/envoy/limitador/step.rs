//! The entries of the descriptors that a limit is about.

use std::{collections::BTreeSet, fmt};

use super::{LimitEntry, branch::quoted};

/// A key of a limit that cannot be expressed, and why.
pub(super) type Inexpressible = (String, String);

/// One entry: its key, and the values that it may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) key: String,
    pub(super) values: Values,
}

/// The values of an entry that a limit is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Values {
    /// This one.
    One(String),
    /// Every value; each counts by itself.
    Each,
    /// Every value but these.
    AllBut {
        excluded: BTreeSet<String>,
        /// Whether each counts by itself; otherwise they share a counter.
        each: bool,
    },
}

/// What a condition says of a key.
enum Test<'a> {
    Is(&'a str),
    IsNot(&'a str),
}

/// Names a limit that is about every request: a descriptor has at least one entry.
const EVERY_REQUEST: &str = "every_request";

/// The entries of `limit`.
pub(super) fn steps(limit: &LimitEntry) -> Result<Vec<Step>, Inexpressible> {
    let mut steps = Vec::new();
    for (place, condition) in limit.conditions.iter().enumerate() {
        let wrong = |message| (format!(".conditions[{place}]"), message);
        let (key, test) = parse(condition).ok_or_else(|| {
            wrong(format!(
                "{} cannot be expressed: only key == \"value\" and key != \"value\" can. Let Envoy decide it, \
                 and send a descriptor entry of its own",
                headgate_config::quoted(condition)
            ))
        })?;
        if !narrow(&mut steps, key, &test) {
            let message = "it contradicts the conditions before it, so that no request fulfils them all: remove the limit";
            return Err(wrong(message.to_owned()));
        }
    }
    for (place, variable) in limit.variables.iter().enumerate() {
        let key = identifier(variable).ok_or_else(|| {
            let message =
                format!("{} is no key of a descriptor", headgate_config::quoted(variable));
            (format!(".variables[{place}]"), message)
        })?;
        count_by(&mut steps, key);
    }
    if steps.is_empty() {
        let named = !limit.name.is_empty() && !limit.name.contains('*');
        let value = if named { &limit.name } else { EVERY_REQUEST };
        steps.push(Step { key: "generic_key".to_owned(), values: Values::One(value.to_owned()) });
    }
    Ok(steps)
}

/// Adds a condition; `false` if none of the key's values fulfils it.
fn narrow(steps: &mut Vec<Step>, key: &str, test: &Test<'_>) -> bool {
    let known = steps.iter_mut().find(|step| step.key == key);
    match (known.map(|step| &mut step.values), test) {
        (Some(Values::One(one)), Test::Is(value)) => one == value,
        (Some(Values::One(one)), Test::IsNot(value)) => one != value,
        (Some(Values::AllBut { excluded, .. }), Test::Is(value)) if excluded.contains(*value) => {
            false
        }
        (Some(values), Test::Is(value)) => {
            *values = Values::One((*value).to_owned());
            true
        }
        (Some(Values::AllBut { excluded, .. }), Test::IsNot(value)) => {
            excluded.insert((*value).to_owned());
            true
        }
        (None | Some(Values::Each), test) => {
            let values = match test {
                Test::Is(value) => Values::One((*value).to_owned()),
                Test::IsNot(value) => {
                    Values::AllBut { excluded: BTreeSet::from([(*value).to_owned()]), each: false }
                }
            };
            steps.push(Step { key: key.to_owned(), values });
            true
        }
    }
}

/// Adds a variable.
fn count_by(steps: &mut Vec<Step>, key: &str) {
    match steps.iter_mut().find(|step| step.key == key).map(|step| &mut step.values) {
        // Its value is known, or counts by itself already.
        Some(Values::One(_) | Values::Each) => {}
        Some(Values::AllBut { each, .. }) => *each = true,
        None => steps.push(Step { key: key.to_owned(), values: Values::Each }),
    }
}

/// `key == "value"` or `key != "value"`, in either kind of quotes or, as it once was, in none.
fn parse(condition: &str) -> Option<(&str, Test<'_>)> {
    let operator = condition.find(['=', '!'])?;
    let (key, rest) = condition.split_at(operator);
    let (value, is) = match rest.strip_prefix("==") {
        Some(value) => (value.trim(), true),
        None => (rest.strip_prefix("!=")?.trim(), false),
    };
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    // Two keys cannot be compared: the right side is a text.
    let bare = || identifier(value).filter(|_| !value.starts_with("descriptors["));
    let value = inner('"').or_else(|| inner('\'')).or_else(bare)?;
    // An asterisk would be a wildcard.
    let plain = !value.is_empty() && !value.contains(['"', '\'', '\\', '*']);
    let test = if is { Test::Is(value) } else { Test::IsNot(value) };
    plain.then_some((identifier(key)?, test))
}

/// The key in `key`, `descriptors[0].key` or `descriptors[0]['key']`.
fn identifier(text: &str) -> Option<&str> {
    let text = text.trim();
    let key = match text.strip_prefix("descriptors[0]") {
        Some(rest) => rest.strip_prefix('.').or_else(|| {
            let inner = rest.strip_prefix('[')?.strip_suffix(']')?;
            let quoted = |quote| inner.strip_prefix(quote)?.strip_suffix(quote);
            quoted('\'').or_else(|| quoted('"'))
        })?,
        None => text,
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    (!key.is_empty() && key.bytes().all(fits)).then_some(key)
}

// === impl Step ===

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        match &self.values {
            Values::One(value) => write!(f, " {}", quoted(value)),
            Values::Each => Ok(()),
            Values::AllBut { excluded, .. } => {
                let excluded: Vec<String> = excluded.iter().map(|it| quoted(it)).collect();
                write!(f, " (any but {})", excluded.join(", "))
            }
        }
    }
}

// === impl Values ===

impl Values {
    /// Whether a value is one of both.
    pub(super) fn overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One(one), Self::One(other)) => one == other,
            (Self::One(one), Self::AllBut { excluded, .. })
            | (Self::AllBut { excluded, .. }, Self::One(one)) => !excluded.contains(one),
            _ => true,
        }
    }
}
