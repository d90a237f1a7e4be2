//! A file of rules. A server validates values; this finds what the server would not see, such as
//! unknown keys, and records the line of each field.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt, fs,
    io::{self, Read},
    path::PathBuf,
    str::FromStr,
};

use headgate_ratelimit::{FieldError, RuleSpec};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    draft::draft,
    yaml::{self, Node, Value as Yaml, YamlError},
};

/// The source of rules.
#[derive(Clone, Debug)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// The rules of a file, before validation.
#[derive(Debug)]
pub struct Drafts {
    source: Source,
    rules: Vec<Map<String, Value>>,
    lines: HashMap<String, usize>,
}

/// An unreadable or invalid file.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("cannot read {source_name}: {cause}")]
    Unreadable {
        /// Name of the source.
        source_name: String,
        /// The reason.
        cause: io::Error,
    },
    /// The file is not YAML.
    #[error("{source_name}:{cause}")]
    Syntax {
        /// Name of the source.
        source_name: String,
        /// The reason, with line and column.
        cause: YamlError,
    },
    /// The file is not a list of valid rules.
    #[error("{source_name} is invalid:\n  {}", .problems.join("\n  "))]
    Problems {
        /// Name of the source.
        source_name: String,
        /// Everything that is wrong, each with its field and line.
        problems: Vec<String>,
    },
}

/// The type of a field.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Number,
    Boolean,
    /// A mapping with these fields, which are numbers.
    Numbers(&'static [&'static str]),
    /// A number, or a mapping: limits by plan.
    NumberOrNested,
    /// Any nested value: conditions, and lists of attributes.
    Nested,
}

const FIELDS: [(&str, FieldType); 14] = [
    ("name", FieldType::Text),
    ("scope", FieldType::Text),
    ("identifier_pattern", FieldType::Text),
    ("limit", FieldType::NumberOrNested),
    ("window_seconds", FieldType::Number),
    ("algorithm", FieldType::Text),
    ("burst", FieldType::Number),
    ("fail_mode", FieldType::Text),
    ("lease", FieldType::Numbers(&["share_percent", "hold_ms"])),
    ("when", FieldType::Nested),
    ("per", FieldType::Nested),
    ("priority", FieldType::Number),
    ("stops", FieldType::Boolean),
    ("enabled", FieldType::Boolean),
];

/// Converts YAML to rules and collects problems.
struct Converter<'s> {
    source: &'s Source,
    lines: HashMap<String, usize>,
    problems: Vec<String>,
}

// === impl Drafts ===

impl Drafts {
    /// Reads the rules of `source`.
    pub fn read(source: &Source) -> Result<Self, FileError> {
        let unreadable = |cause| FileError::Unreadable { source_name: source.to_string(), cause };
        Self::parse(source, &source.text().map_err(unreadable)?)
    }

    /// Parses the `text` of `source`.
    pub fn parse(source: &Source, text: &str) -> Result<Self, FileError> {
        let source_name = source.to_string();
        let document = match yaml::parse(text) {
            Ok(document) => document,
            Err(cause) => return Err(FileError::Syntax { source_name, cause }),
        };
        let mut converter = Converter { source, lines: HashMap::new(), problems: Vec::new() };
        let rules = converter.document(document);
        match converter {
            Converter { lines, problems, .. } if problems.is_empty() => {
                Ok(Self { source: source.clone(), rules, lines })
            }
            Converter { problems, .. } => Err(FileError::Problems { source_name, problems }),
        }
    }

    /// Returns the fields of each rule.
    pub fn rules(&self) -> &[Map<String, Value>] {
        &self.rules
    }

    /// Validates the rules as a server does, and returns them in the order of the file.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong, also rules that occur twice.
    pub fn validate(&self) -> Result<Vec<RuleSpec>, FileError> {
        let (mut specs, mut problems) = (Vec::new(), Vec::new());
        for (index, fields) in self.rules.iter().enumerate() {
            match draft(fields).validate(None) {
                Ok(spec) => specs.push((index, spec)),
                Err(errors) => {
                    for FieldError { field, message, .. } in errors {
                        problems.push(self.problem(index, field, &message));
                    }
                }
            }
        }
        let mut known = HashMap::new();
        for (index, spec) in &specs {
            if let Some(first) = known.insert(spec.identity(), *index) {
                let message = format!("has the same name or subjects and window as rules[{first}]");
                problems.push(self.problem(*index, "window_seconds", &message));
            }
        }
        if problems.is_empty() {
            return Ok(specs.into_iter().map(|(_, spec)| spec).collect());
        }
        Err(FileError::Problems { source_name: self.source.to_string(), problems })
    }

    fn problem(&self, index: usize, field: &str, message: &str) -> String {
        let field = format!("rules[{index}].{field}");
        let place = self.place(&field).unwrap_or_else(|| self.source.to_string());
        format!("{field} ({place}): {message}")
    }

    /// Returns file and line of a field such as `rules[3].limit`, or of its rule if it has no such
    /// field.
    pub fn place(&self, field: &str) -> Option<String> {
        let rule = field.split('.').next().unwrap_or_default();
        let line = self.lines.get(field).or_else(|| self.lines.get(rule))?;
        Some(format!("{}:{line}", self.source))
    }
}

// === impl Converter ===

impl Converter<'_> {
    fn document(&mut self, document: Option<Node>) -> Vec<Map<String, Value>> {
        let listed = match document {
            Some(Node { value: Yaml::Map(entries), .. }) => self.under_rules(entries),
            other => other,
        };
        match listed {
            Some(Node { value: Yaml::List(items), .. }) => {
                items.into_iter().enumerate().map(|(i, item)| self.rule(i, item)).collect()
            }
            // With --prune an empty list deletes every rule, so it must be explicit.
            other => {
                let got = other.map_or("nothing", |node| node.value.kind());
                let expected =
                    "expected a list of rules, alone or under `rules` (write `rules: []` for none)";
                self.problems.push(format!("{expected}, got {got}"));
                Vec::new()
            }
        }
    }

    fn under_rules(&mut self, entries: Vec<(String, usize, Node)>) -> Option<Node> {
        let mut rules = None;
        for (key, line, node) in entries {
            if key == "rules" {
                rules = Some(node);
            } else {
                self.add_problem(&key, line, "unknown key; known here: rules");
            }
        }
        rules
    }

    fn rule(&mut self, i: usize, item: Node) -> Map<String, Value> {
        let path = format!("rules[{i}]");
        self.lines.insert(path.clone(), item.line);
        let Yaml::Map(entries) = item.value else {
            let got = item.value.kind();
            self.add_problem(
                &path,
                item.line,
                &format!("expected a mapping with the fields of a rule, got {got}"),
            );
            return Map::new();
        };
        let mut rule = Map::new();
        for (key, line, node) in entries {
            let field = format!("{path}.{key}");
            match FIELDS.iter().find(|(name, _)| *name == key) {
                Some((_, FieldType::Numbers(known))) if matches!(node.value, Yaml::Map(_)) => {
                    let numbers = self.numbers(&field, node.value, known);
                    rule.insert(key, Value::Object(numbers));
                }
                Some((_, kind)) => match kind.to_json(node.value) {
                    Ok(value) => drop(rule.insert(key, value)),
                    Err(got) => {
                        self.add_problem(&field, line, &format!("expected a value, got {got}"));
                    }
                },
                None => self.add_problem(&field, line, &unknown()),
            }
            self.lines.insert(field, line);
        }
        rule
    }

    /// A nested mapping, whose values are numbers.
    fn numbers(&mut self, path: &str, value: Yaml, known: &[&str]) -> Map<String, Value> {
        let mut numbers = Map::new();
        let Yaml::Map(entries) = value else { return numbers };
        for (key, line, node) in entries {
            let field = format!("{path}.{key}");
            if known.contains(&key.as_str()) {
                match FieldType::Number.to_json(node.value) {
                    Ok(value) => drop(numbers.insert(key, value)),
                    Err(got) => {
                        self.add_problem(&field, line, &format!("expected a value, got {got}"));
                    }
                }
            } else {
                let message = format!("unknown key; known here: {}", known.join(", "));
                self.add_problem(&field, line, &message);
            }
            self.lines.insert(field, line);
        }
        numbers
    }

    fn add_problem(&mut self, field: &str, line: usize, message: &str) {
        self.problems.push(format!("{field} ({}:{line}): {message}", self.source));
    }
}

fn unknown() -> String {
    format!("unknown key; known here: {}", FIELDS.map(|(name, _)| name).join(", "))
}

// === impl FieldType ===

impl FieldType {
    /// Returns the JSON value. A text that is not of this type stays a string, which the server
    /// rejects.
    fn to_json(self, value: Yaml) -> Result<Value, &'static str> {
        match (self, value) {
            (Self::Nested, value) | (Self::NumberOrNested, value @ Yaml::Map(_)) => {
                Ok(nested(value))
            }
            (_, Yaml::Null) => Ok(Value::Null),
            (_, Yaml::Quoted(text)) | (Self::Text | Self::Numbers(_), Yaml::Plain(text)) => {
                Ok(Value::String(text))
            }
            (Self::Number | Self::NumberOrNested, Yaml::Plain(text)) => {
                Ok(match text.parse::<i64>() {
                    Ok(number) => Value::from(number),
                    Err(_) => text.parse::<f64>().map_or_else(|_| Value::from(text), Value::from),
                })
            }
            (Self::Boolean, Yaml::Plain(text)) => Ok(match text.as_str() {
                "true" | "True" | "TRUE" => Value::Bool(true),
                "false" | "False" | "FALSE" => Value::Bool(false),
                _ => Value::String(text),
            }),
            (_, other) => Err(other.kind()),
        }
    }
}

/// Returns a nested value; scalars without quotes are numbers, booleans and null as in YAML.
fn nested(value: Yaml) -> Value {
    match value {
        Yaml::Null => Value::Null,
        Yaml::Quoted(text) => Value::String(text),
        Yaml::Plain(text) => match text.as_str() {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            _ => FieldType::Number.to_json(Yaml::Plain(text)).unwrap_or_default(),
        },
        Yaml::List(items) => items.into_iter().map(|item| nested(item.value)).collect(),
        Yaml::Map(entries) => {
            let entries = entries.into_iter().map(|(key, _, node)| (key, nested(node.value)));
            Value::Object(entries.collect())
        }
    }
}

// === impl Source ===

impl Source {
    fn text(&self) -> io::Result<String> {
        match self {
            Self::Stdin => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text)?;
                Ok(text)
            }
            Self::File(path) => fs::read_to_string(path),
        }
    }
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { Self::Stdin } else { Self::File(text.into()) })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
