use std::fmt;

/// What only the node and its operator know. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Shorter passwords can be guessed.
    pub(super) const MIN_BYTES: usize = 16;

    pub(super) fn new(text: String) -> Self {
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
