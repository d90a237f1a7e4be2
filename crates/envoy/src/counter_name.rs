//! The key of a descriptor's counter: its domain, keys and values, escaped so that they cannot be
//! confused.

use std::fmt::Write as _;

use headgate::Key;
use ring::digest::{SHA256, digest};

/// `domain|key=value|key=value`.
pub(crate) struct CounterName(String);

impl CounterName {
    pub(crate) fn new(domain: &str) -> Self {
        let mut name = Self(String::with_capacity(64));
        name.push(domain);
        name
    }

    pub(crate) fn entry(&mut self, key: &str, value: &str) {
        self.0.push('|');
        self.push(key);
        self.0.push('=');
        self.push(value);
    }

    /// Returns a valid key: a name that is too long is replaced by its digest.
    pub(crate) fn finish(self) -> String {
        if self.0.len() <= Key::MAX_BYTES {
            return self.0;
        }
        let digest = digest(&SHA256, self.0.as_bytes());
        digest.as_ref().iter().fold(String::from("sha256:"), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Adds `text`; separators, and bytes that a key must not hold, are percent-encoded.
    fn push(&mut self, text: &str) {
        let plain = |byte: u8| !matches!(byte, 0..=0x1f | 0x7f | b'{' | b'}' | b'|' | b'=' | b'%');
        if text.bytes().all(plain) {
            self.0.push_str(text);
            return;
        }
        for character in text.chars() {
            match u8::try_from(character) {
                Ok(byte) if byte < 0x80 && !plain(byte) => {
                    let _ = write!(self.0, "%{byte:02x}");
                }
                _ => self.0.push(character),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(domain: &str, entries: &[(&str, &str)]) -> String {
        let mut name = CounterName::new(domain);
        for (key, value) in entries {
            name.entry(key, value);
        }
        name.finish()
    }

    #[test]
    fn names_differ_whatever_their_parts_contain() {
        assert_eq!(name("edge", &[("a", "b"), ("c", "")]), "edge|a=b|c=");
        assert_eq!(name("edge", &[("path", "/{id}?x=1")]), "edge|path=/%7bid%7d?x%3d1");
        assert_eq!(name("e|a=b", &[]), "e%7ca%3db");
        assert_ne!(name("e", &[("a", "1|b=2")]), name("e", &[("a", "1"), ("b", "2")]));
        assert_ne!(name("e", &[("a", "%7c")]), name("e", &[("a", "|")]));
        assert_eq!(name("e", &[("a", "ユーザー\n")]), "e|a=ユーザー%0a");
    }

    #[test]
    fn every_name_is_a_valid_key() {
        let long = "x".repeat(5000);
        for value in ["", "{}", "\0\u{7f}", &long, "é{"] {
            let name = name("edge", &[("k", value)]);
            assert!(Key::new(&name).is_ok(), "{value}: {name}");
        }
        assert_ne!(name("e", &[("a", &long)]), name("e", &[("b", &long)]));
    }
}
