//! Errors of a configuration: the key, its location, and the expected value.

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

use crate::tree::{Node, Origin};

/// A configuration that cannot be loaded.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The file is not YAML.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Yaml {
        /// Path of the file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// Error message of the parser.
        message: String,
    },
    /// Keys or values are invalid.
    #[error("invalid configuration:\n  {}", lines(.0))]
    Problems(Vec<Problem>),
}

/// One invalid key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    key: String,
    message: String,
    origin: Option<Origin>,
}

// === impl ConfigError ===

impl ConfigError {
    /// Creates an error of `problems`, sorted by key.
    pub fn problems(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| a.key.cmp(&b.key));
        Self::Problems(problems)
    }

    /// Returns the problems, to be reported together with those of other files.
    pub fn into_problems(self) -> Vec<Problem> {
        match self {
            Self::Unreadable { path, cause } => {
                vec![Problem::new(format!("cannot read {}", path.display()), cause.to_string())]
            }
            Self::Yaml { path, line, column, message } => {
                vec![Problem::new(format!("{}:{line}:{column}", path.display()), message)]
            }
            Self::Problems(problems) => problems,
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

// === impl Problem ===

impl Problem {
    /// Creates a problem of `key`, such as `server.port` or `auth.tokens[0].role`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), origin: None }
    }

    /// Prefixes the key with the section that it belongs to.
    #[must_use]
    pub fn within(self, section: &str) -> Self {
        Self { key: format!("{section}.{}", self.key), ..self }
    }

    /// Returns `true` if both are about the same key, or one about a key of the other's section.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (short, long) = if self.key.len() <= other.key.len() {
            (&self.key, &other.key)
        } else {
            (&other.key, &self.key)
        };
        long.strip_prefix(short.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// Returns the key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns what is wrong, and what is expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prefixes the key with the name of its file.
    pub(crate) fn of_file(self, name: &str) -> Self {
        let key = if self.key == "." { name.to_owned() } else { format!("{name}: {}", self.key) };
        Self { key, ..self }
    }

    /// Adds the origin of the value.
    pub(crate) fn from(self, origin: &Origin) -> Self {
        Self { origin: Some(origin.clone()), ..self }
    }

    /// Adds the origin that the key has in `tree`, if it is there.
    pub(crate) fn found_in(self, tree: &Node) -> Self {
        match tree.get(&self.key) {
            Some(node) => self.from(&node.origin),
            None => self,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(origin) = self.origin.as_ref().filter(|origin| **origin != Origin::Default) {
            write!(f, " ({origin})")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Returns a value for an error message: quoted, and at most 64 characters of it.
pub fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 64;
    let short: String = text.chars().take(MAX_CHARS).collect();
    format!("{short:?}")
}
