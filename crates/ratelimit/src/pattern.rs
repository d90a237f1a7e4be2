//! Patterns of identifiers.

use std::{fmt, str::FromStr};

use headgate::{Key, KeyError};
use thiserror::Error;

/// The identifiers that a rule matches: one, those with a prefix, or all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// This identifier.
    Exact(Box<str>),
    /// Identifiers with this prefix; written `prefix*`.
    Prefix(Box<str>),
    /// All identifiers; written `*`.
    Any,
}

/// Invalid pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PatternError {
    /// The pattern is empty.
    #[error("identifier_pattern must not be empty; * matches all identifiers")]
    Empty,
    /// The pattern is too long.
    #[error("identifier_pattern must be at most {max} characters, got {0}", max = Pattern::MAX_CHARS)]
    TooLong(usize),
    /// The pattern has a wildcard before its end.
    #[error("identifier_pattern may have a * only at its end")]
    InnerWildcard,
    /// The pattern contains characters that no identifier may have.
    #[error("identifier_pattern{}", .0.to_string().trim_start_matches("key"))]
    Characters(KeyError),
}

impl Pattern {
    /// Maximum length in characters.
    pub const MAX_CHARS: usize = 255;

    /// Returns `true` if the pattern matches `identifier`.
    pub fn matches(&self, identifier: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *identifier,
            Self::Prefix(prefix) => identifier.starts_with(&**prefix),
            Self::Any => true,
        }
    }

    /// Returns the text before the wildcard; `None` for `*`.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Exact(literal) | Self::Prefix(literal) => Some(literal),
            Self::Any => None,
        }
    }

    /// Returns the identifier that an exact pattern matches.
    pub fn exact(&self) -> Option<&str> {
        match self {
            Self::Exact(exact) => Some(exact),
            Self::Prefix(_) | Self::Any => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let chars = text.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(PatternError::TooLong(chars));
        }
        let (literal, wild) = match text.strip_suffix('*') {
            Some("") => return Ok(Self::Any),
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        if literal.contains('*') {
            return Err(PatternError::InnerWildcard);
        }
        match Key::new(literal) {
            Ok(_) if wild => Ok(Self::Prefix(literal.into())),
            Ok(_) => Ok(Self::Exact(literal.into())),
            Err(KeyError::Empty) => Err(PatternError::Empty),
            Err(error) => Err(PatternError::Characters(error)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(exact) => f.write_str(exact),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Any => f.write_str("*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_round_trip() {
        for text in ["*", "u1", "ip:*", "/api/v1/orders", "ユーザー*", &"x".repeat(255)] {
            assert_eq!(text.parse::<Pattern>().map(|p| p.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn rejects_invalid_patterns() {
        let cases = [
            ("", "identifier_pattern must not be empty; * matches all identifiers"),
            ("a*b", "identifier_pattern may have a * only at its end"),
            ("**", "identifier_pattern may have a * only at its end"),
            ("a\nb", "identifier_pattern must not contain control characters (found byte 0x0a)"),
            (
                "a{b",
                "identifier_pattern must not contain braces: '{' and '}' choose the node in a Redis Cluster",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Pattern>().unwrap_err().to_string(), expected, "{text}");
        }
        let long = "x".repeat(256).parse::<Pattern>();
        assert_eq!(long, Err(PatternError::TooLong(256)));
    }

    #[test]
    fn prefixes_match_the_beginning_of_identifiers() {
        let prefix: Pattern = "ip:*".parse().unwrap();
        assert!(prefix.matches("ip:1.2.3.4") && prefix.matches("ip:"));
        assert!(!prefix.matches("ip"));
        assert!(!"u1".parse::<Pattern>().unwrap().matches("u10"));
    }
}
