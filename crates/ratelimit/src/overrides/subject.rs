//! Subjects of overrides.

use std::fmt;

use serde_json::{Map, Value as Json};
use smallvec::SmallVec;
use thiserror::Error;

use crate::{AttributeError, AttributeValue, Attributes, RuleId};

/// Attributes that a check must have, by name: `tenant=acme`, or `tenant=acme,user=u1`. The subject
/// of a rule by scope is the attribute of its scope: `user=u1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OverrideSubject(Vec<(Box<str>, Box<str>)>);

/// An invalid subject.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SubjectError {
    /// It is not a JSON object of texts and numbers.
    #[error(
        "subject must be an object of attributes and their values, such as {{\"tenant\": \"acme\"}}"
    )]
    Type,
    /// It has too few or too many attributes.
    #[error("subject must have 1 to {max} attributes", max = OverrideSubject::MAX)]
    Size,
    /// An attribute is invalid.
    #[error("subject: {0}")]
    Attribute(#[from] AttributeError),
}

/// A rule and a subject as bytes, for look-ups.
pub(crate) type SubjectKey = SmallVec<[u8; 96]>;

impl OverrideSubject {
    /// Maximum number of attributes.
    pub const MAX: usize = 8;

    /// Creates a subject from attributes, none of which may be a list.
    pub fn new(attributes: &Attributes<'_>) -> Result<Self, SubjectError> {
        if !(1..=Self::MAX).contains(&attributes.len()) {
            return Err(SubjectError::Size);
        }
        let entry =
            |(name, value): (&str, &AttributeValue<'_>)| Some((name.into(), value.text()?.into()));
        let entries = attributes.iter().map(entry).collect::<Option<Vec<_>>>();
        let mut entries = entries.ok_or(SubjectError::Type)?;
        entries.sort();
        Ok(Self(entries))
    }

    /// Parses a JSON object of texts and numbers.
    pub fn parse(json: &Json) -> Result<Self, SubjectError> {
        let Json::Object(fields) = json else { return Err(SubjectError::Type) };
        let mut attributes = Attributes::default();
        for (name, value) in fields {
            match value {
                Json::String(text) => attributes.insert(name.as_str(), text.as_str())?,
                Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                    (Some(number), _) => attributes.insert(name.as_str(), number)?,
                    (_, Some(number)) => attributes.insert(name.as_str(), number)?,
                    _ => attributes
                        .insert_number(name.as_str(), number.as_f64().unwrap_or(f64::NAN))?,
                },
                _ => return Err(SubjectError::Type),
            }
        }
        Self::new(&attributes)
    }

    /// Returns the subject as JSON, with names in order.
    pub fn to_json(&self) -> Json {
        let entries = self.0.iter().map(|(name, value)| (name.to_string(), (&**value).into()));
        Json::Object(entries.collect::<Map<_, _>>())
    }

    /// Returns the attributes and their values, in the order of names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the names of the attributes.
    pub(crate) fn names(&self) -> Box<[Box<str>]> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the key of the subject under a rule.
    pub(crate) fn key(&self, rule: RuleId) -> SubjectKey {
        let mut key = SubjectKey::new();
        write_key(&mut key, rule, self.iter().map(|(name, value)| (name, Some(value))));
        key
    }
}

/// Writes the key of a subject; returns `false` if a value is missing.
pub(crate) fn write_key<'a>(
    key: &mut SubjectKey,
    rule: RuleId,
    values: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> bool {
    key.clear();
    key.extend_from_slice(rule.as_uuid().as_bytes());
    for (name, value) in values {
        let Some(value) = value else { return false };
        key.extend_from_slice(name.as_bytes());
        // Names have no spaces, and lengths separate values.
        key.push(b' ');
        key.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
        key.extend_from_slice(value.as_bytes());
    }
    true
}

impl fmt::Display for OverrideSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let separator = if i > 0 { "," } else { "" };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn subjects_are_attributes_in_the_order_of_their_names() {
        let subject = OverrideSubject::parse(&json!({"user": 7, "tenant": "acme"})).unwrap();
        assert_eq!(subject.to_string(), "tenant=acme,user=7");
        assert_eq!(subject.to_json().to_string(), r#"{"tenant":"acme","user":"7"}"#);
        assert_eq!(OverrideSubject::parse(&subject.to_json()), Ok(subject));
    }

    #[test]
    fn other_subjects_are_invalid() {
        let long = "x".repeat(1025);
        let cases = [
            json!("tenant=acme"),
            json!({}),
            json!({"a": ["b"]}),
            json!({"a": null}),
            json!({"a b": "c"}),
            json!({"a": long}),
            json!({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}),
        ];
        for json in cases {
            assert!(OverrideSubject::parse(&json).is_err(), "{json}");
        }
    }

    #[test]
    fn different_subjects_have_different_keys() {
        let rule = RuleId::random();
        let subjects = [
            json!({"a": "b"}),
            json!({"a": "b c"}),
            json!({"a": "b", "c": ""}),
            json!({"a": ""}),
            json!({"a": "", "b": ""}),
            json!({"aa": "b"}),
        ];
        let key = |json| OverrideSubject::parse(json).unwrap().key(rule);
        let keys: std::collections::HashSet<_> = subjects.iter().map(key).collect();
        assert_eq!(keys.len(), subjects.len());
        assert!(
            !keys.contains(&OverrideSubject::parse(&subjects[0]).unwrap().key(RuleId::random()))
        );
    }
}
