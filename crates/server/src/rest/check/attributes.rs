//! The attributes of a check, and their validation.

use std::{borrow::Cow, fmt};

use headgate_ratelimit::{AttributeError, AttributeValue, Attributes};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::rest::error::Detail;

/// Attributes as they were sent.
#[derive(Debug, Default)]
pub(in crate::rest) enum WireAttributes<'a> {
    #[default]
    Missing,
    Given(Vec<(Cow<'a, str>, WireValue<'a>)>),
    /// A value of another type, by its name.
    Other(&'static str),
}

/// The value of an attribute as it was sent.
#[derive(Debug)]
pub(in crate::rest) enum WireValue<'a> {
    Text(Cow<'a, str>),
    Integer(i64),
    Unsigned(u64),
    Fraction(f64),
    List(Vec<Cow<'a, str>>),
    /// A value of another type, by its name.
    Other(&'static str),
}

// === impl WireAttributes ===

impl<'a> WireAttributes<'a> {
    pub(in crate::rest) const fn is_given(&self) -> bool {
        !matches!(self, Self::Missing)
    }

    /// Returns the attributes, or all that is invalid.
    pub(in crate::rest) fn read<'s>(&'s self) -> Result<Attributes<'s>, Vec<Detail>>
    where
        'a: 's,
    {
        let given = match self {
            Self::Missing => return Ok(Attributes::default()),
            Self::Given(given) => given,
            Self::Other(kind) => {
                let message = format!("attributes must be an object, got {kind}");
                return Err(vec![Detail::new("attributes", "wrong_type", message)]);
            }
        };
        let (mut attributes, mut wrong) = (Attributes::default(), Vec::new());
        for (name, value) in given {
            match value.insert_into(&mut attributes, name) {
                Ok(()) => {}
                Err((_, error @ AttributeError::TooMany)) => {
                    wrong.push(Detail::new("attributes", "too_many", error.to_string()));
                    break;
                }
                Err((reason, error)) => {
                    let message = format!("attributes: {error}");
                    wrong.push(Detail::new("attributes", reason, message));
                }
            }
        }
        if wrong.is_empty() { Ok(attributes) } else { Err(wrong) }
    }
}

impl WireValue<'_> {
    fn insert_into<'s>(
        &'s self,
        attributes: &mut Attributes<'s>,
        name: &'s str,
    ) -> Result<(), (&'static str, AttributeError)> {
        let inserted = match self {
            Self::Text(text) => attributes.insert(name, &**text),
            Self::Integer(number) => attributes.insert(name, *number),
            Self::Unsigned(number) => attributes.insert(name, *number),
            Self::Fraction(number) => attributes.insert_number(name, *number),
            Self::List(texts) => {
                let texts = texts.iter().map(|text| Cow::Borrowed(&**text)).collect();
                attributes.insert(name, AttributeValue::List(texts))
            }
            Self::Other(kind) => {
                return Err(("wrong_type", AttributeError::Type(name.to_owned(), kind)));
            }
        };
        inserted.map_err(|error| ("invalid", error))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireAttributes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyAttributes)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyAttributes;

impl<'de> Visitor<'de> for AnyAttributes {
    type Value = WireAttributes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut attributes = Vec::with_capacity(8);
        while let Some(Name(name)) = entries.next_key()? {
            // One more than the maximum is enough to refuse them.
            if attributes.len() > Attributes::MAX {
                entries.next_value::<IgnoredAny>()?;
            } else {
                attributes.push((name, entries.next_value()?));
            }
        }
        Ok(WireAttributes::Given(attributes))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(WireAttributes::Missing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(WireAttributes::Other("a list"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(WireAttributes::Other("a string"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(WireAttributes::Other("a boolean"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(WireAttributes::Other("a number"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(WireAttributes::Other("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(WireAttributes::Other("a number"))
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = WireValue<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(WireValue::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(WireValue::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(WireValue::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(WireValue::Unsigned(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(WireValue::Fraction(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(WireValue::Other("a boolean"))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(WireValue::Other("nothing"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let (mut texts, mut wrong) = (Vec::new(), false);
        while let Some(item) = items.next_element::<WireValue<'de>>()? {
            match item {
                WireValue::Text(text) if texts.len() <= Attributes::MAX_ITEMS => texts.push(text),
                WireValue::Text(_) => {}
                _ => wrong = true,
            }
        }
        Ok(if wrong { WireValue::Other("a list of other values") } else { WireValue::List(texts) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(WireValue::Other("an object"))
    }
}

/// A name, borrowed if it has no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(AnyValue)? {
            WireValue::Text(text) => Ok(Self(text)),
            _ => Err(serde::de::Error::custom("names must be strings")),
        }
    }
}
