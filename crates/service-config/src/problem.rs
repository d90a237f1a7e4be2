//! Problems of a document.

use std::fmt;

use serde::Serialize;

/// A problem and the field that has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    /// JSON pointer to the field.
    pub pointer: String,
    /// Description of the expected value.
    pub message: String,
    /// True if the field is merely unknown: a newer version may know it.
    #[serde(skip)]
    pub unknown: bool,
}

// === impl FieldProblem ===

impl FieldProblem {
    pub(crate) fn new(pointer: &str, message: impl Into<String>) -> Self {
        Self { pointer: pointer.to_owned(), message: message.into(), unknown: false }
    }

    pub(crate) fn unknown_field(pointer: String) -> Self {
        Self { pointer, message: "is not a field of this section".to_owned(), unknown: true }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

/// Joins all problems into one line.
pub(crate) fn summary(problems: &[FieldProblem]) -> String {
    let lines: Vec<String> = problems.iter().map(FieldProblem::to_string).collect();
    lines.join("; ")
}

/// Escapes a step of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    // The length of a name is up to the client.
    let name: String = name.chars().take(64).collect();
    name.replace('~', "~0").replace('/', "~1")
}
