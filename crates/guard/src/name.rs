//! Names used in store keys, headers and metrics.

use thiserror::Error;

/// Invalid name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "invalid name {0:?}: expected 1 to {max} bytes of a-z, 0-9, '-' and '_'",
    max = Name::MAX_BYTES
)]
pub struct NameError(pub String);

/// A name that needs no escaping in store keys, headers and metrics.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(Box<str>);

impl Name {
    /// Two names and a tag fit before an address.
    pub(crate) const MAX_BYTES: usize = 16;

    pub(crate) fn new(word: &str) -> Result<Self, NameError> {
        let fits = (1..=Self::MAX_BYTES).contains(&word.len());
        let known = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if fits && word.bytes().all(known) {
            Ok(Self(word.into()))
        } else {
            Err(NameError(word.chars().take(64).collect()))
        }
    }

    pub(crate) const fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for word in ["a", "user-api", "trust_2", "sixteen-bytes-ok"] {
            assert_eq!(Name::new(word).unwrap().as_str(), word);
        }
        for word in ["", "Auth", "a:b", "a b", "{a}", "ü", "seventeen-bytes-x"] {
            assert_eq!(Name::new(word), Err(NameError(word.into())), "{word}");
        }
    }
}
