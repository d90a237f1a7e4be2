//! A value that is never shown.

use std::fmt;

/// A secret of the operator, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Minimum length of a secret: shorter ones could be guessed.
    pub const MIN_BYTES: usize = 16;

    /// Hides `text`.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
