//! Deserializes a tree of texts, and reports every mismatch.

use std::fmt;

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, Expected, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    problem::{Problem, quoted},
    tree::{Node, Value},
};

/// Deserializes `tree` and adds every mismatch to `problems`.
///
/// Serde stops at the first mismatch. To report all of them at once, the key that failed is removed
/// and the rest is read again; every key has a default.
pub(crate) fn read<T: DeserializeOwned + Default>(tree: &Node, problems: &mut Vec<Problem>) -> T {
    let mut rest = tree.clone();
    loop {
        let error = match serde_path_to_error::deserialize(rest.clone()) {
            Ok(read) => return read,
            Err(error) => error,
        };
        let key = error.path().to_string();
        problems.push(Problem::new(&key, error.inner().to_string()).found_in(&rest));
        // A list is all or nothing: an item that fails takes its list with it.
        let key = key.split_once('[').map_or(key.as_str(), |(list, _)| list);
        if rest.remove(key).is_none() {
            return T::default();
        }
    }
}

/// Maximum number of mismatches that [`read_items`] reports: each reads the rest again.
const MAX_MISMATCHES: usize = 50;

/// Deserializes `tree` and adds every mismatch to `problems`, also of several items of a list.
///
/// Like [`read`], but only the key that failed is removed from an item. Every key of an item needs
/// a default. Returns `None` if nothing can be read, or if there are too many mismatches.
pub(crate) fn read_items<T: DeserializeOwned>(
    tree: &Node,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    let mut rest = tree.clone();
    for _ in 0..MAX_MISMATCHES {
        let error = match serde_path_to_error::deserialize(rest.clone()) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let key = error.path().to_string();
        problems.push(Problem::new(&key, error.inner().to_string()));
        if !rest.clear(&key) {
            return None;
        }
    }
    None
}

/// The serde name of a newtype whose value has the type that YAML gives it: a number, a boolean,
/// null, a string, a list or a section.
///
/// Every other value is deserialized from its text in the file, even if that looks like a number.
pub const TYPED: &str = "$typed";

/// A value of another type than its key expects.
#[derive(Debug)]
pub(crate) struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    /// Never quotes the value: it may be a secret in the wrong place.
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let got = match unexpected {
            Unexpected::Map => "a section",
            Unexpected::Seq => "a list",
            _ => "a text",
        };
        Self(format!("expected {expected}, got {got}"))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self(format!("unknown key; known here: {}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("missing key {field:?}"))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self(format!("expected {}, got {}", known.join(" or "), quoted(variant)))
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Text(text) => visitor.visit_string(text),
            Value::List(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter())),
            Value::Map(entries) => visitor.visit_map(MapDeserializer::new(entries.into_iter())),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match &self.value {
            Value::Text(text) => match text.parse() {
                Ok(value) => visitor.visit_bool(value),
                Err(_) => Err(Mismatch(format!("expected true or false, got {}", quoted(text)))),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    /// A list in a variable is separated by commas.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let Value::Text(text) = &self.value else {
            return self.deserialize_any(visitor);
        };
        let item = |text: &str| Self {
            value: Value::Text(text.trim().to_owned()),
            origin: self.origin.clone(),
            quoted: self.quoted,
        };
        visitor.visit_seq(SeqDeserializer::new(text.split(',').map(item)))
    }

    /// A known key that is present has a value: null was already left out of its section.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let Value::Text(text) = &self.value else {
            return match name {
                TYPED => self.deserialize_any(visitor),
                _ => visitor.visit_newtype_struct(self),
            };
        };
        match text.as_str() {
            _ if name != TYPED => visitor.visit_newtype_struct(self),
            _ if self.quoted => self.deserialize_any(visitor),
            "true" | "True" | "TRUE" => visitor.visit_bool(true),
            "false" | "False" | "FALSE" => visitor.visit_bool(false),
            text => match number(text) {
                Some(number) => visitor.visit_f64(number),
                None => self.deserialize_any(visitor),
            },
        }
    }

    /// Null leaves a known key at its default; an unknown one stays an error.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.value {
            // Serde would read a list as the fields in order.
            Value::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            Value::Map(mut entries) => {
                entries.retain(|key, node| !(node.is_null() && known.contains(&key.as_str())));
                visitor.visit_map(MapDeserializer::new(entries.into_iter()))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let expected = format!("expected {}", variants.join(" or "));
        let Value::Text(text) = self.value else {
            return Err(Mismatch(expected));
        };
        let text: StringDeserializer<Mismatch> = text.into_deserializer();
        text.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct map identifier ignored_any
    }
}

/// Returns the number that an unquoted text is in YAML, if it is one.
fn number(text: &str) -> Option<f64> {
    let of_digits = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.parse().ok().filter(|_| text.bytes().all(of_digits))
}

impl IntoDeserializer<'_, Mismatch> for Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
