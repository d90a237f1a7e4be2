//! A field of a JSON object before validation, so that all invalid fields can be reported at once.

use std::{borrow::Cow, fmt};

use headgate_ratelimit::Input;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// The value of a field. Texts without escapes are borrowed from the body.
#[derive(Debug, Default)]
pub(super) enum Field<'a> {
    #[default]
    Missing,
    Null,
    Text(Cow<'a, str>),
    Number(i64),
    Bool(bool),
    /// A value of another type, by its name.
    Other(&'static str),
}

impl Field<'_> {
    /// Returns the text in the field called `name`, if it is set.
    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self {
            Self::Missing | Self::Null => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            other => Err(format!("{name} must be a string, got {}", other.kind())),
        }
    }

    /// Returns the boolean in the field called `name`; default false.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self {
            Self::Missing | Self::Null => Ok(false),
            Self::Bool(value) => Ok(*value),
            other => Err(format!("{name} must be a boolean, got {}", other.kind())),
        }
    }

    /// The field as input for a text.
    pub(super) fn into_text(self) -> Input<String> {
        self.into_input(|field| match field {
            Self::Text(text) => Some(text.into_owned()),
            _ => None,
        })
    }

    /// The field as input for a whole number.
    pub(super) fn into_number(self) -> Input<i64> {
        self.into_input(|field| match field {
            Self::Number(number) => Some(number),
            _ => None,
        })
    }

    /// The field as input for a boolean.
    pub(super) fn into_bool(self) -> Input<bool> {
        self.into_input(|field| match field {
            Self::Bool(value) => Some(value),
            _ => None,
        })
    }

    fn into_input<T>(self, take: impl FnOnce(Self) -> Option<T>) -> Input<T> {
        match self {
            Self::Missing => Input::Missing,
            Self::Null => Input::Null,
            given => {
                let kind = given.kind();
                take(given).map_or(Input::WrongType(kind), Input::Given)
            }
        }
    }

    /// The name of its type.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Missing | Self::Null => "nothing",
            Self::Text(_) => "a string",
            Self::Number(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Other(kind) => kind,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyField)
    }
}

struct AnyField;

impl<'de> Visitor<'de> for AnyField {
    type Value = Field<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Field::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        // No valid number is this large: larger ones become the maximum.
        Ok(Field::Number(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Field::Number(number))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Field::Other("a fraction"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Field::Bool(value))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other("an object"))
    }
}
