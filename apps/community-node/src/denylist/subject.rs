use std::{fmt, str::FromStr};

use headgate_guard::{Cidr, CidrError};
use thiserror::Error;

/// Subject of an entry. Its text is canonical: equal subjects have equal texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// An address or a network.
    Network(Cidr),
    /// A public key, as 64 lower-case hexadecimal digits: an author's, a client's or a peer's.
    Key(String),
}

/// Invalid text of a subject.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("subject must be an address, a network or a public key of 64 hexadecimal digits: {0}")]
pub(crate) struct SubjectError(CidrError);

/// Hexadecimal digits of a public key.
const KEY_DIGITS: usize = 64;

// === impl Subject ===

impl Subject {
    /// Name in responses.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Network(_) => "network",
            Self::Key(_) => "pubkey",
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let text = text.trim();
        if text.len() == KEY_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Self::Key(text.to_ascii_lowercase()));
        }
        text.parse().map(Self::Network).map_err(SubjectError)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(range) if *range == Cidr::from(range.network()) => {
                write!(f, "{}", range.network())
            }
            Self::Network(range) => write!(f, "{range}"),
            Self::Key(key) => f.write_str(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_written_in_one_way() {
        let key = "aB".repeat(32);
        let cases = [
            ("203.0.113.7", "203.0.113.7"),
            (" 203.0.113.7/32 ", "203.0.113.7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("2001:DB8::/32", "2001:db8::/32"),
            (&key, &key.to_lowercase()),
        ];
        for (text, expected) in cases {
            let subject: Subject = text.parse().unwrap();
            assert_eq!(subject.to_string(), expected);
            assert_eq!(expected.parse(), Ok(subject));
        }
    }

    #[test]
    fn what_is_no_subject_says_what_to_write() {
        for (text, expected) in [
            ("spammer", "\"spammer\" is not an IP address"),
            ("203.0.113.7/24", "write 203.0.113.0/24 for the range"),
            (&"ab".repeat(31), "public key of 64 hexadecimal digits"),
        ] {
            let error = text.parse::<Subject>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
