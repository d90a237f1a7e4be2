//! Limits of Limitador, as files of domains.
//!
//! There, a limit is about all requests that fulfil its conditions, and counts by its variables. Here, it is about descriptors
//! that bring exactly these entries: the conditions' first, then the variables', in the order of the file.

use std::{collections::BTreeMap, fmt::Write as _, path::Path};

use serde::Deserialize;

use super::{
    source::{self, text},
    unit::Unit,
};
use crate::config::{Bounded, ConfigError, Document, Problem, shown};

/// A file that was made of limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// The domain, which was a namespace.
    pub domain: String,
    /// The file's text.
    pub yaml: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a limit")]
struct LimitEntry {
    namespace: String,
    max_value: Bounded<0, { u32::MAX as u64 }>,
    seconds: Bounded<1, 31_622_400>,
    #[serde(default)]
    name: String,
    /// Only Limitador's own interface knows limits by it.
    #[serde(default, rename = "id")]
    _id: String,
    #[serde(default)]
    conditions: Vec<String>,
    #[serde(default)]
    variables: Vec<String>,
}

/// A descriptor, on its way to a file.
#[derive(Default)]
struct Branch {
    limit: Option<(u64, u64, String)>,
    /// By key and value; no value is any.
    below: BTreeMap<(String, Option<String>), Branch>,
}

/// Converts the limits in the file at `path`.
///
/// # Errors
///
/// Says which limits cannot be expressed, and why.
pub fn convert(path: &Path) -> Result<Vec<Converted>, ConfigError> {
    let document = Document::parse(path, &text(path)?)?;
    let limits: Vec<LimitEntry> = document.read()?;
    let mut domains: BTreeMap<String, Branch> = BTreeMap::new();
    let mut problems = Vec::new();
    for (place, limit) in limits.into_iter().enumerate() {
        let domain = domains.entry(limit.namespace.clone()).or_default();
        if let Err((key, message)) = put(domain, limit) {
            problems.push(Problem::new(format!("[{place}]{key}"), message));
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError::problems(
            problems.into_iter().map(|it| document.place(it)).collect(),
        ));
    }
    let converted = domains.into_iter().map(|(domain, branch)| {
        let mut yaml = format!("domain: {}\ndescriptors:\n", quoted(&domain));
        branch.write(&mut yaml, 1);
        Converted { domain, yaml }
    });
    converted
        .map(|it| source::domain(&(path.to_owned(), it.yaml.as_str().into())).map(|_| it))
        .collect()
}

fn put(domain: &mut Branch, limit: LimitEntry) -> Result<(), (String, String)> {
    let mut steps = Vec::new();
    for (place, condition) in limit.conditions.iter().enumerate() {
        let step = equality(condition).ok_or_else(|| {
            let message = format!(
                "{} cannot be expressed: only key == \"value\" can. Let Envoy decide it, and send a descriptor entry of its own",
                shown(condition)
            );
            (format!(".conditions[{place}]"), message)
        })?;
        steps.push(step);
    }
    for (place, variable) in limit.variables.iter().enumerate() {
        let key = identifier(variable).ok_or_else(|| {
            (
                format!(".variables[{place}]"),
                format!("{} is no key of a descriptor", shown(variable)),
            )
        })?;
        steps.push((key.to_owned(), None));
    }
    if steps.is_empty() {
        let message = "it has no conditions and no variables, so that no descriptor could name it: let Envoy \
                       send a generic_key, and make that its condition";
        return Err((String::new(), message.to_owned()));
    }
    let branch =
        steps.into_iter().fold(domain, |branch, step| branch.below.entry(step).or_default());
    if branch.limit.is_some() {
        let message = "another limit has the same conditions and variables, and a descriptor has one limit: \
                       let Envoy send a descriptor for each, with a generic_key that tells them apart";
        return Err((String::new(), message.to_owned()));
    }
    branch.limit = Some((limit.max_value.get(), limit.seconds.get(), limit.name));
    Ok(())
}

/// `key == "value"`, in either kind of quotes or, as it once was, in none.
fn equality(condition: &str) -> Option<(String, Option<String>)> {
    let (key, value) = condition.split_once("==")?;
    let (key, value) = (identifier(key)?, value.trim());
    let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).or_else(|| identifier(value))?;
    let plain = !value.is_empty() && !value.contains(['"', '\'', '\\']) && !value.ends_with('*');
    plain.then(|| (key.to_owned(), Some(value.to_owned())))
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

impl Branch {
    fn write(&self, yaml: &mut String, depth: usize) {
        let indent = "  ".repeat(2 * depth - 1);
        for ((key, value), branch) in &self.below {
            let mut line = |text: String| {
                // Writing to a text cannot fail.
                let _ = writeln!(yaml, "{text}");
            };
            line(format!("{indent}- key: {}", quoted(key)));
            if let Some(value) = value {
                line(format!("{indent}  value: {}", quoted(value)));
            }
            if let Some((max, seconds, name)) = &branch.limit {
                line(format!("{indent}  rate_limit:"));
                if !name.is_empty() {
                    line(format!("{indent}    name: {}", quoted(name)));
                }
                let (unit, times) = unit(*seconds);
                line(format!("{indent}    unit: {}", unit.name()));
                if times > 1 {
                    line(format!("{indent}    unit_multiplier: {times}"));
                }
                line(format!("{indent}    requests_per_unit: {max}"));
            }
            if !branch.below.is_empty() {
                line(format!("{indent}  descriptors:"));
                branch.write(yaml, depth + 1);
            }
        }
    }
}

/// The longest unit that divides it, and how often.
fn unit(seconds: u64) -> (Unit, u64) {
    let fits = |unit: &Unit| seconds.is_multiple_of(unit.seconds());
    let unit = Unit::ALL.into_iter().find(fits).unwrap_or(Unit::Second);
    (unit, seconds / unit.seconds())
}

/// A text in quotes: JSON's are YAML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
