//! What is wrong with a document.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// What is expected there.
    pub message: String,
    /// Whether a field is merely not known: a newer version may know it.
    #[serde(skip)]
    pub unknown: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

/// All of them in one line.
pub(crate) fn summary(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("; ")
}

/// A step of a pointer, with what it must not contain escaped.
pub(crate) fn escaped(name: &str) -> String {
    // A name is as long as whoever sent it likes.
    let name: String = name.chars().take(64).collect();
    name.replace('~', "~0").replace('/', "~1")
}
