//! What is wrong with a configuration, in words that say where and what was expected.

use std::{fmt, io, path::PathBuf};

use thiserror::Error;

use super::tree::{Node, Origin};

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        cause: io::Error,
    },
    /// The file is not YAML.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// Where in the line, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// Keys or values do not fit.
    #[error("the configuration does not fit:\n  {}", listed(.0))]
    Problems(Vec<Problem>),
}

/// One key that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    key: String,
    message: String,
    origin: Option<Origin>,
}

// === impl ConfigError ===

impl ConfigError {
    pub(crate) fn problems(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| a.key.cmp(&b.key));
        Self::Problems(problems)
    }
}

fn listed(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n  ")
}

// === impl Problem ===

impl Problem {
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into(), origin: None }
    }

    /// With the name of the file it is about, where its key has no place.
    pub(super) fn of_file(self, name: &str) -> Self {
        let key = if self.key == "." { name.to_owned() } else { format!("{name}: {}", self.key) };
        Self { key, ..self }
    }

    /// Whether the place of its key is known.
    pub(super) const fn is_placed(&self) -> bool {
        self.origin.is_some()
    }

    /// With the place of the value that is wrong.
    pub(super) fn from(self, origin: &Origin) -> Self {
        Self { origin: Some(origin.clone()), ..self }
    }

    /// With a key that is one of the section `section`.
    pub(crate) fn within(self, section: &str) -> Self {
        Self { key: format!("{section}.{}", self.key), ..self }
    }

    /// With the place that `tree` has the key from.
    pub(super) fn found_in(self, tree: &Node) -> Self {
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

/// A value as a message shows it: quoted, and short.
pub(crate) fn shown(text: &str) -> String {
    const MAX_CHARS: usize = 64;
    let short: String = text.chars().take(MAX_CHARS).collect();
    format!("{short:?}")
}
