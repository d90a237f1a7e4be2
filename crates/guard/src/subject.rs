//! Authenticated subjects.

use std::fmt;

use headgate::{Key, KeyError};

/// Authenticated identity of a client: a public key or a user id, not a token.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Subject(Box<str>);

impl Subject {
    /// A subject of this name: at most 512 bytes, without braces and control characters.
    pub fn new(name: &str) -> Result<Self, KeyError> {
        Key::new(name).map(|key| Self(key.subject().into()))
    }

    /// The name.
    pub const fn as_str(&self) -> &str {
        &self.0
    }

    /// The key. The name was validated in `new`.
    pub(crate) fn key(&self) -> Option<Key<'_>> {
        Key::new(&self.0).ok()
    }
}

/// Omits the name, which must not reach logs.
impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}
