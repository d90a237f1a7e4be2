//! Who somebody has proved to be.

use std::fmt;

use headgate::{Key, KeyError};

/// Who somebody has proved to be: a public key, a user's id. Never a bare token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subject(Box<str>);

impl Subject {
    /// The subject of this name: at most 512 bytes, no braces, no control characters.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        Key::new(name).map(|key| Self(key.subject().into()))
    }

    /// The name.
    pub const fn as_str(&self) -> &str {
        &self.0
    }

    /// Its key, which was validated when it was made.
    pub(crate) fn key(&self) -> Option<Key<'_>> {
        Key::new(&self.0).ok()
    }
}

/// Says nothing of the name: it is nobody's business in a log.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}
