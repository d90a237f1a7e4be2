//! Attributes of a check: facts about a request that rules are written over.

use std::{borrow::Cow, fmt::Write as _};

use headgate::Key;
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;
use thiserror::Error;

/// A flat, bounded map of attributes. Names are unique.
///
/// ```
/// use headgate_ratelimit::Attributes;
///
/// let mut attributes = Attributes::default();
/// attributes.insert("tenant", "acme")?;
/// attributes.insert("size", 5_u64)?;
/// assert!(attributes.insert("tenant", "other").is_err());
/// # Ok::<(), headgate_ratelimit::AttributeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes<'a>(SmallVec<[(Cow<'a, str>, AttributeValue<'a>); 8]>);

/// The value of an attribute. A number is its shortest text: conditions on texts apply to it, and
/// conditions on numbers apply to texts that are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// A text or a number.
    Text(Cow<'a, str>),
    /// Several texts. A condition holds if it holds for one of them.
    List(Vec<Cow<'a, str>>),
}

/// Invalid attributes.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AttributeError {
    /// There are too many attributes.
    #[error("there may be at most {max} attributes", max = Attributes::MAX)]
    TooMany,
    /// The name is empty, too long or has other characters.
    #[error(
        "attribute names must have 1 to {max} ASCII letters, digits, '_', '-' and '.'",
        max = Attributes::MAX_NAME_BYTES
    )]
    Name,
    /// Two attributes have the same name.
    #[error("{0} is given twice")]
    Duplicate(String),
    /// The value is too long.
    #[error("{0} must be at most {max} bytes long", max = Attributes::MAX_TEXT_BYTES)]
    TooLong(String),
    /// The list has too many items.
    #[error("{0} may have at most {max} items", max = Attributes::MAX_ITEMS)]
    TooManyItems(String),
    /// The value is of another type, which is named.
    #[error("{0} must be a string, a number or a list of strings, got {1}")]
    Type(String, &'static str),
    /// The number is not finite.
    #[error("{0} must be a finite number")]
    NotFinite(String),
}

// === impl Attributes ===

impl<'a> Attributes<'a> {
    /// Maximum number of attributes.
    pub const MAX: usize = 32;

    /// Maximum length of a name in bytes.
    pub const MAX_NAME_BYTES: usize = 64;

    /// Maximum length of a text in bytes.
    pub const MAX_TEXT_BYTES: usize = 1024;

    /// Maximum number of items of a list.
    pub const MAX_ITEMS: usize = 64;

    /// Adds an attribute.
    pub fn insert(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<AttributeValue<'a>>,
    ) -> Result<(), AttributeError> {
        let (name, value) = (name.into(), value.into());
        self.check_name(&name)?;
        if value.texts().any(|text| text.len() > Self::MAX_TEXT_BYTES) {
            return Err(AttributeError::TooLong(name.into_owned()));
        }
        if value.texts().len() > Self::MAX_ITEMS {
            return Err(AttributeError::TooManyItems(name.into_owned()));
        }
        self.0.push((name, value));
        Ok(())
    }

    /// Adds an attribute whose texts may be of any length, and its list too: the caller bounds them.
    pub fn insert_unbounded(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        value: impl Into<AttributeValue<'a>>,
    ) -> Result<(), AttributeError> {
        let name = name.into();
        self.check_name(&name)?;
        self.0.push((name, value.into()));
        Ok(())
    }

    /// Adds a number.
    pub fn insert_number(
        &mut self,
        name: impl Into<Cow<'a, str>>,
        number: f64,
    ) -> Result<(), AttributeError> {
        let name = name.into();
        match number_text(number) {
            Some(text) => self.insert(name, text),
            None => Err(AttributeError::NotFinite(name.into_owned())),
        }
    }

    /// Returns an error if no attribute of this name can be added.
    fn check_name(&self, name: &str) -> Result<(), AttributeError> {
        if !Self::is_name(name) {
            return Err(AttributeError::Name);
        }
        if self.get(name).is_some() {
            return Err(AttributeError::Duplicate(name.to_owned()));
        }
        if self.0.len() == Self::MAX {
            return Err(AttributeError::TooMany);
        }
        Ok(())
    }

    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttributeValue<'a>> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// Returns all attributes in the order of their insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the number of attributes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a copy that borrows nothing.
    pub fn into_owned(self) -> Attributes<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let value = |value| match value {
            AttributeValue::Text(text) => AttributeValue::Text(own(text)),
            AttributeValue::List(texts) => {
                AttributeValue::List(texts.into_iter().map(own).collect())
            }
        };
        Attributes(self.0.into_iter().map(|(name, given)| (own(name), value(given))).collect())
    }

    /// Returns `true` if an attribute may have this name.
    pub fn is_name(name: &str) -> bool {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (1..=Self::MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(known)
    }
}

// === impl AttributeValue ===

impl AttributeValue<'_> {
    /// Returns the text, or the items of the list.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        let texts = match self {
            Self::Text(text) => std::slice::from_ref(text),
            Self::List(texts) => texts,
        };
        texts.iter().map(|text| &**text)
    }

    /// Returns the text; `None` for a list.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::List(_) => None,
        }
    }
}

impl<'a> From<&'a str> for AttributeValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for AttributeValue<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for AttributeValue<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue<'_> {
    fn from(number: u64) -> Self {
        Self::Text(Cow::Owned(itoa::Buffer::new().format(number).to_owned()))
    }
}

impl From<i64> for AttributeValue<'_> {
    fn from(number: i64) -> Self {
        Self::Text(Cow::Owned(itoa::Buffer::new().format(number).to_owned()))
    }
}

/// Returns the identifier that a text from a client is counted by, for the attributes `service`,
/// `user` and `endpoint`: one that is no valid identifier is encoded, so that it cannot be used to get
/// around other limits by an error. Different texts have different identifiers: what begins like an
/// encoded text is encoded too, so that no client can use up what another is allowed.
pub fn identifier(text: Cow<'_, str>) -> Cow<'_, str> {
    if Key::new(&text).is_ok() && !text.starts_with('%') {
        return text;
    }
    let mut encoded = String::from("%");
    if text.len() > Key::MAX_BYTES / 4 {
        for byte in Sha256::digest(text.as_bytes()) {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "{byte:02x}");
        }
        return Cow::Owned(encoded);
    }
    for character in text.chars() {
        match character {
            '{' | '}' | '%' | '\0'..='\x1f' | '\x7f' => {
                let _ = write!(encoded, "%{:02x}", u32::from(character));
            }
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// The shortest text of a finite number: `5` for 5.0.
pub(crate) fn number_text(number: f64) -> Option<String> {
    // Display writes -0 with its sign.
    number.is_finite().then(|| (if number == 0.0 { 0.0 } else { number }).to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_what_is_out_of_bounds() {
        let mut attributes = Attributes::default();
        for name in ["", "a b", "é", "a:b", &"n".repeat(65)] {
            assert_eq!(
                attributes.insert(name.to_owned(), "x"),
                Err(AttributeError::Name),
                "{name}"
            );
        }
        assert_eq!(attributes.insert("n".repeat(64), "x".repeat(1024)), Ok(()));
        let long = attributes.insert("long", "x".repeat(1025));
        assert_eq!(long, Err(AttributeError::TooLong("long".to_owned())));
        let items = |count| AttributeValue::List(vec!["x".into(); count]);
        assert_eq!(attributes.insert("list", items(64)), Ok(()));
        let many = attributes.insert("more", items(65));
        assert_eq!(many, Err(AttributeError::TooManyItems("more".to_owned())));
        let twice = attributes.insert("list", "x");
        assert_eq!(twice, Err(AttributeError::Duplicate("list".to_owned())));
        let infinite = attributes.insert_number("size", f64::INFINITY);
        assert_eq!(infinite, Err(AttributeError::NotFinite("size".to_owned())));
        for number in 2..Attributes::MAX {
            attributes.insert(format!("a{number}"), "x").unwrap();
        }
        assert_eq!(attributes.insert("last", "x"), Err(AttributeError::TooMany));
    }

    #[test]
    fn numbers_are_their_shortest_text() {
        let mut attributes = Attributes::default();
        attributes.insert_number("five", 5.0).unwrap();
        attributes.insert_number("half", 0.5).unwrap();
        attributes.insert_number("zero", -0.0).unwrap();
        attributes.insert("large", u64::MAX).unwrap();
        attributes.insert("negative", -7_i64).unwrap();
        let texts: Vec<&str> = attributes.iter().flat_map(|(_, value)| value.texts()).collect();
        assert_eq!(texts, ["5", "0.5", "0", "18446744073709551615", "-7"]);
    }

    #[test]
    fn an_encoded_identifier_is_not_the_identifier_of_another_text() {
        assert_eq!(identifier("u1".into()), "u1");
        assert_eq!(identifier("100%".into()), "100%");
        let long = "x".repeat(Key::MAX_BYTES + 1);
        for text in ["", "{a}", "\n", "%", "%{", &long] {
            let encoded = identifier(text.into());
            assert!(Key::new(&encoded).is_ok(), "{encoded}");
            assert_ne!(identifier(encoded.clone()), encoded, "{text}");
        }
    }

    proptest! {
        #[test]
        fn different_texts_have_different_identifiers_that_are_valid_keys(
            texts in proptest::collection::vec("[a%{}\u{0}é27bd5]{0,5}|[%a{]{120,140}|[%a]{510,515}", 1..40)
        ) {
            let mut seen: HashMap<String, String> = HashMap::new();
            // Also what a client sends that knows how texts are encoded.
            let encoded: Vec<String> =
                texts.iter().map(|text| identifier(text.into()).into_owned()).collect();
            for text in texts.into_iter().chain(encoded) {
                let identifier = identifier(Cow::Borrowed(&text)).into_owned();
                prop_assert!(Key::new(&identifier).is_ok(), "{identifier}");
                let other = seen.entry(identifier).or_insert_with(|| text.clone());
                prop_assert_eq!(other, &text);
            }
        }
    }
}
