//! The subject of a counter: the values of the attributes that a rule counts by.

use std::{borrow::Cow, fmt::Write as _, net::IpAddr};

use headgate::Key;
use sha2::{Digest as _, Sha256};

use super::Selector;
use crate::Attributes;

impl Selector {
    /// The subject of a rule that counts all checks together.
    pub(crate) const ALL: &str = "all";

    /// Returns the values of the attributes that the rule counts by, as the subject of a key.
    /// Different values have different subjects; a usual single value is its own.
    pub fn subject<'v>(&self, attributes: &'v Attributes<'_>) -> Cow<'v, str> {
        let value = |name: &str| {
            let text = attributes.get(name).and_then(|value| value.text()).unwrap_or_default();
            if self.is_address(name) { canonical(text) } else { Cow::Borrowed(text) }
        };
        let subject = match &*self.per {
            [] => return Cow::Borrowed(Self::ALL),
            [name] => match value(name) {
                plain if !plain.is_empty() && !plain.bytes().any(is_escaped) => plain,
                other => Cow::Owned(escaped([other])),
            },
            several => Cow::Owned(escaped(several.iter().map(|name| value(name)))),
        };
        if subject.len() > Key::MAX_BYTES { Cow::Owned(digest(&subject)) } else { subject }
    }

    /// Returns the attribute whose value a subject is; `None` if it stands for other values.
    pub(crate) fn per_of(&self, subject: &str) -> Option<&str> {
        match &*self.per {
            [name] if !subject.bytes().any(is_escaped) => Some(name),
            _ => None,
        }
    }

    /// Returns `true` if a condition compares the attribute with ranges of addresses.
    fn is_address(&self, name: &str) -> bool {
        self.when().any(|(other, condition)| condition.has_networks() && other == name)
    }
}

/// Returns an address in its usual notation: an address that is written in another way must not
/// have another counter.
fn canonical(text: &str) -> Cow<'_, str> {
    match text.parse::<IpAddr>() {
        Ok(address) => Cow::Owned(address.to_canonical().to_string()),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Separates values; also what keys cannot contain, and what escapes begin with.
const fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | 0x7f | b'{' | b'}' | b'%' | b',')
}

/// Returns the values with commas between them.
fn escaped<'v>(values: impl IntoIterator<Item = Cow<'v, str>>) -> String {
    let mut text = String::new();
    for (i, value) in values.into_iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        // A subject must not be empty, and no other value is a percent sign alone.
        if value.is_empty() {
            text.push('%');
        }
        for char in value.chars() {
            match u8::try_from(char) {
                Ok(byte) if byte.is_ascii() && is_escaped(byte) => {
                    let _ = write!(text, "%{byte:02X}");
                }
                _ => text.push(char),
            }
        }
    }
    text
}

/// Stands for a subject that is too long. A subject that is not too long never begins with two
/// percent signs.
fn digest(subject: &str) -> String {
    let mut text = String::from("%%");
    for byte in Sha256::digest(subject) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::Condition;

    fn selector(per: usize) -> Selector {
        let per = (0..per).map(|i| format!("a{i}").into()).collect();
        Selector { per, ..Selector::default() }
    }

    fn subject(values: &[&str]) -> String {
        let mut attributes = Attributes::default();
        for (i, value) in values.iter().enumerate() {
            attributes.insert(format!("a{i}"), *value).unwrap();
        }
        selector(values.len()).subject(&attributes).into_owned()
    }

    #[test]
    fn subjects_are_the_values() {
        assert_eq!(subject(&[]), "all");
        assert_eq!(subject(&["acme"]), "acme");
        assert_eq!(subject(&["acme", "ユーザー"]), "acme,ユーザー");
        assert_eq!(subject(&["a,b", "{x}"]), "a%2Cb,%7Bx%7D");
        assert_eq!(subject(&[""]), "%");
        assert_eq!(subject(&["", "a"]), "%,a");
        assert_eq!(subject(&[&"x".repeat(513)]).len(), 66);
    }

    #[test]
    fn an_address_has_one_subject_however_it_is_written() {
        let parse = |json| Condition::parse(&json).unwrap();
        let range = ("ip".into(), parse(json!({"not_in": ["10.0.0.0/8"]})));
        let by_address =
            Selector { when: vec![range], per: vec!["ip".into()], ..Selector::default() };
        let by_text = Selector { per: vec!["ip".into()], ..Selector::default() };
        for (written, address) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("::FFFF:c000:0201", "192.0.2.1"),
            ("2001:DB8:0:0::1", "2001:db8::1"),
            ("not an address", "not an address"),
        ] {
            let mut attributes = Attributes::default();
            attributes.insert("ip", written).unwrap();
            assert_eq!(by_address.subject(&attributes), address);
            assert_eq!(by_text.subject(&attributes), written);
        }
    }

    proptest! {
        #[test]
        fn different_values_have_different_subjects_that_are_valid_keys(
            all in proptest::collection::vec(
                proptest::collection::vec("[a,%{}\u{0}é]{0,3}|[,%]{500,600}", 1..4), 1..40)
        ) {
            let mut seen: HashMap<(usize, String), Vec<String>> = HashMap::new();
            for values in all {
                let texts: Vec<&str> = values.iter().map(String::as_str).collect();
                let subject = subject(&texts);
                prop_assert!(Key::new(&subject).is_ok(), "{subject}");
                let other = seen.entry((values.len(), subject)).or_insert_with(|| values.clone());
                prop_assert_eq!(other, &values);
            }
        }
    }
}
