//! Keys: the names of subjects.

use std::{fmt, str};

use thiserror::Error;

/// The name of a subject's state in a store: the subject, which may be untrusted input, within a
/// [`KeySpace`] that the program chooses.
///
/// It borrows its parts, so that creating one allocates nothing.
///
/// ```
/// use headgate::{Key, KeySpace};
///
/// // The same user has separate units for logins and for searches.
/// let logins = KeySpace::new("login:", "");
/// let key = Key::new("user:42")?.within(&logins);
/// assert_eq!(key.to_string(), "login:user:42");
/// assert!(Key::new("").is_err());
/// # Ok::<(), headgate::KeyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key<'a> {
    subject: &'a str,
    space: &'a KeySpace<'a>,
}

/// The prefix and the suffix of a [`Key`].
///
/// They come from the program and are not validated. Programs that share a store choose different
/// ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeySpace<'a> {
    prefix: &'a str,
    suffix: &'a str,
}

/// A [`Key`] that owns its parts, and so can outlive a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnedKey {
    prefix: Box<str>,
    subject: Box<str>,
    suffix: Box<str>,
}

/// Error for an invalid key.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyError {
    /// The subject is empty.
    #[error("key must not be empty")]
    Empty,
    /// The subject is too long: keys are kept in memory and sent with every decision.
    #[error("key must be at most {max} bytes, got {0}", max = Key::MAX_BYTES)]
    TooLong(usize),
    /// The subject is not text.
    #[error("key must be UTF-8")]
    NotUtf8,
    /// The subject has control characters, which forge log lines and break line-based tools.
    #[error("key must not contain control characters (found byte 0x{0:02x})")]
    Control(u8),
    /// The subject has braces, which choose the node of a key in Redis Cluster.
    #[error("key must not contain braces: '{{' and '}}' choose the node in a Redis Cluster")]
    Brace,
}

// === impl Key ===

impl<'a> Key<'a> {
    /// Maximum length of a subject, in bytes.
    pub const MAX_BYTES: usize = 512;

    /// The key of `subject`.
    pub const fn new(subject: &'a str) -> Result<Self, KeyError> {
        let bytes = subject.as_bytes();
        if bytes.is_empty() {
            return Err(KeyError::Empty);
        }
        if bytes.len() > Self::MAX_BYTES {
            return Err(KeyError::TooLong(bytes.len()));
        }
        if may_be_invalid(bytes)
            && let Some(error) = first_invalid(bytes)
        {
            return Err(error);
        }
        Ok(Self { subject, space: &KeySpace::EMPTY })
    }

    /// The key of a subject that arrived as bytes.
    pub const fn from_bytes(subject: &'a [u8]) -> Result<Self, KeyError> {
        match str::from_utf8(subject) {
            Ok(subject) => Self::new(subject),
            Err(_) => Err(KeyError::NotUtf8),
        }
    }

    /// The same subject within `space`.
    #[must_use]
    pub const fn within(self, space: &'a KeySpace<'a>) -> Self {
        Self { space, ..self }
    }

    /// The subject alone.
    pub const fn subject(&self) -> &'a str {
        self.subject
    }

    /// The key space.
    pub const fn space(&self) -> &'a KeySpace<'a> {
        self.space
    }

    /// Prefix, subject and suffix.
    pub const fn parts(&self) -> [&'a str; 3] {
        [self.space.prefix, self.subject, self.space.suffix]
    }

    /// A copy that owns its parts.
    pub fn to_owned(&self) -> OwnedKey {
        OwnedKey {
            prefix: self.space.prefix.into(),
            subject: self.subject.into(),
            suffix: self.space.suffix.into(),
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|part| f.write_str(part))
    }
}

// === impl KeySpace ===

impl<'a> KeySpace<'a> {
    /// No prefix and no suffix.
    pub const EMPTY: KeySpace<'static> = KeySpace::new("", "");

    /// The space of keys `{prefix}{subject}{suffix}`.
    pub const fn new(prefix: &'a str, suffix: &'a str) -> Self {
        Self { prefix, suffix }
    }

    /// The prefix and the suffix.
    pub const fn parts(&self) -> [&'a str; 2] {
        [self.prefix, self.suffix]
    }

    /// Returns `true` if there is neither a prefix nor a suffix.
    pub const fn is_empty(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }
}

/// Returns `true` if any byte may be invalid. Tests eight at a time, with false positives: `|` and
/// `~`, which lie between the invalid ones.
const fn may_be_invalid(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk() else {
        return first_invalid(bytes).is_some();
    };
    let mut suspicious = may_be_invalid_bytes(*last);
    let mut rest = bytes;
    while let Some((eight, behind)) = rest.split_first_chunk() {
        suspicious |= may_be_invalid_bytes(*eight);
        rest = behind;
    }
    suspicious != 0
}

/// The highest bit of each byte that may be invalid.
const fn may_be_invalid_bytes(eight: [u8; 8]) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let eight = u64::from_le_bytes(eight);
    let below_space = eight.wrapping_sub(EACH * 0x20);
    let from_brace = (eight & (EACH * 0x7f)) + EACH * (0x80 - b'{' as u64);
    // Bytes from 0x80 on belong to characters beyond ASCII, all of them valid.
    (below_space | from_brace) & !eight & (EACH * 0x80)
}

const fn first_invalid(mut bytes: &[u8]) -> Option<KeyError> {
    while let [byte, rest @ ..] = bytes {
        match byte {
            b'{' | b'}' => return Some(KeyError::Brace),
            0..=0x1f | 0x7f => return Some(KeyError::Control(*byte)),
            _ => bytes = rest,
        }
    }
    None
}

// === impl OwnedKey ===

impl OwnedKey {
    /// The key space.
    pub fn space(&self) -> KeySpace<'_> {
        KeySpace { prefix: &self.prefix, suffix: &self.suffix }
    }

    /// The borrowed form; `space` is this key's [`space`](Self::space).
    pub fn as_key<'a>(&'a self, space: &'a KeySpace<'a>) -> Key<'a> {
        Key { subject: &self.subject, space }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_consists_of_its_prefix_and_its_suffix() {
        assert_eq!(KeySpace::new("user:", ":60").parts(), ["user:", ":60"]);
    }

    #[test]
    fn invalid_subjects_are_refused_with_the_reason() {
        let cases: &[(&[u8], KeyError)] = &[
            (b"", KeyError::Empty),
            (&[b'x'; 10_000], KeyError::TooLong(10_000)),
            (b"a\nb", KeyError::Control(b'\n')),
            (b"a\0b", KeyError::Control(0)),
            (b"a\x7fb", KeyError::Control(0x7f)),
            (b"a{b", KeyError::Brace),
            (b"a}b", KeyError::Brace),
            (b"\xff\xfe", KeyError::NotUtf8),
        ];
        for (subject, expected) in cases {
            assert_eq!(Key::from_bytes(subject), Err(*expected), "{subject:?}");
        }
    }

    #[test]
    fn invalid_bytes_are_found_at_any_position() {
        for length in 1..40 {
            for at in 0..length {
                for byte in 0..0x80 {
                    for around in *b" !a~|\x80" {
                        let mut bytes = vec![around; length];
                        bytes[at] = byte;
                        let expected = match byte {
                            b'{' | b'}' => Some(KeyError::Brace),
                            0..0x20 | 0x7f => Some(KeyError::Control(byte)),
                            _ => None,
                        };
                        let found =
                            if may_be_invalid(&bytes) { first_invalid(&bytes) } else { None };
                        assert_eq!(found, expected, "{bytes:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn any_other_text_is_valid() {
        for subject in ["u1", "/api/v1/orders", "ユーザー", "a b:c*", "a|b", "~", &"x".repeat(512)]
        {
            assert_eq!(Key::new(subject).map(|key| key.to_string()).as_deref(), Ok(subject));
        }
    }

    #[test]
    fn a_key_is_the_concatenation_of_its_parts() {
        let space = KeySpace::new("ratelimit:user:", ":60");
        let key = Key::new("user-001").unwrap().within(&space);
        assert_eq!(key.to_string(), "ratelimit:user:user-001:60");
        let owned = key.to_owned();
        assert_eq!(owned.as_key(&owned.space()), key);
    }
}
