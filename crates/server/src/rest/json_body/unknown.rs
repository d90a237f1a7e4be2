//! Unknown fields of a body: all of them, each with its place.
//!
//! Bodies are parsed by types that refuse unknown fields, which costs nothing and stops at the
//! first one. Only after such a refusal is the body read a second time, by this deserializer, which
//! skips and collects them.

use std::{borrow::Cow, cell::RefCell, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::StrDeserializer,
    },
    forward_to_deserialize_any,
};

use crate::rest::error::Detail;

/// Maximum number of unknown fields that are listed.
const MAX_LISTED: usize = 20;

/// Maximum length of a name that is shown.
const MAX_NAME_CHARS: usize = 64;

/// Parses `text`, which is at `path` of the body, as if it had no unknown fields. Returns the
/// object, if the rest is one, and these fields.
pub(super) fn parse<'a, T: Deserialize<'a>>(
    path: String,
    text: &'a str,
) -> (Option<T>, Vec<Detail>) {
    let found = RefCell::new(Vec::new());
    let mut json = serde_json::Deserializer::from_str(text);
    let lenient = Lenient { inner: &mut json, path, found: &found };
    let object = T::deserialize(lenient).ok();
    (object, found.into_inner())
}

/// Wraps a deserializer, or what it is handed to, at one place of the body.
struct Lenient<'f, D> {
    inner: D,
    path: String,
    found: &'f RefCell<Vec<Detail>>,
}

/// The fields of an object without the unknown ones.
struct Fields<'f, A> {
    map: Lenient<'f, A>,
    known: &'static [&'static str],
    /// Path of the next value.
    value_path: String,
}

/// The items of a list, each with its place.
struct Items<'f, A> {
    list: Lenient<'f, A>,
    next: usize,
}

/// A visitor of an object with these known fields.
struct ObjectVisitor<'f, V>(Lenient<'f, V>, &'static [&'static str]);

/// A visitor of a list.
struct ListVisitor<'f, V>(Lenient<'f, V>);

// === impl Lenient ===

impl<'f, D> Lenient<'f, D> {
    /// The same place, for another part of the machinery.
    fn of<T>(&self, inner: T) -> Lenient<'f, T> {
        Lenient { inner, path: self.path.clone(), found: self.found }
    }

    fn at<T>(&self, path: String, inner: T) -> Lenient<'f, T> {
        Lenient { inner, path, found: self.found }
    }

    fn field(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn refuse(&self, name: &str, known: &[&str]) {
        let mut found = self.found.borrow_mut();
        if found.len() < MAX_LISTED {
            let shown: String = name.chars().take(MAX_NAME_CHARS).collect();
            let message = if known.is_empty() {
                format!("unknown field {shown:?}; this request has no fields")
            } else {
                format!("unknown field {shown:?}; known here: {}", known.join(", "))
            };
            found.push(Detail::at(self.field(&shown), "unknown", message));
        }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Lenient<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = ListVisitor(self.of(visitor));
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = ObjectVisitor(self.of(visitor), fields);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    /// Raw values are such a struct: what is in them is parsed later.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Lenient<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.of(deserializer);
        self.inner.deserialize(deserializer)
    }
}

// === impl visitors ===

impl<'de, V: Visitor<'de>> Visitor<'de> for ObjectVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.inner.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let Self(place, known) = self;
        let fields = Fields { map: place.of(map), known, value_path: String::new() };
        place.inner.visit_map(fields)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ListVisitor<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.inner.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        let Self(place) = self;
        let items = Items { list: place.of(items), next: 0 };
        place.inner.visit_seq(items)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Fields<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.inner.next_key::<Cow<'de, str>>()? {
            if self.known.contains(&&*name) {
                self.value_path = self.map.field(&name);
                let name: StrDeserializer<'_, A::Error> = (&*name).into_deserializer();
                return seed.deserialize(name).map(Some);
            }
            self.map.refuse(&name, self.known);
            self.map.inner.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        let seed = self.map.at(std::mem::take(&mut self.value_path), seed);
        self.map.inner.next_value_seed(seed)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        let path = format!("{}[{}]", self.list.path, self.next);
        self.next += 1;
        let seed = self.list.at(path, seed);
        self.list.inner.next_element_seed(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer<'a> {
        name: &'a str,
        #[serde(borrow, default)]
        items: Vec<Inner<'a>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner<'a> {
        #[serde(default)]
        cost: Option<u64>,
        #[serde(borrow, default)]
        tag: &'a str,
    }

    fn unknown(text: &str) -> (bool, String) {
        let (object, found) = parse::<Outer<'_>>(String::new(), text);
        (object.is_some(), serde_json::to_string(&found).unwrap())
    }

    #[test]
    fn every_unknown_field_is_found_at_its_place() {
        let text = r#"{"nam":{"a":[1]},"name":"n","items":[{"cost":1},{"costs":[{}],"tag":"t"}]}"#;
        let (is_object, found) = unknown(text);
        assert!(is_object);
        let expected = r#"[{"field":"nam","reason":"unknown","message":"unknown field \"nam\"; known here: name, items"},{"field":"items[1].costs","reason":"unknown","message":"unknown field \"costs\"; known here: cost, tag"}]"#;
        assert_eq!(found, expected);

        let (object, _) = parse::<Outer<'_>>(String::new(), text);
        let object = object.unwrap();
        assert_eq!((object.name, object.items[0].cost, object.items[1].tag), ("n", Some(1), "t"));
    }

    #[test]
    fn unknown_fields_are_found_although_the_rest_is_invalid() {
        let (is_object, found) = unknown(r#"{"a":1,"items":7}"#);
        assert!(!is_object);
        assert!(found.contains(r#""field":"a""#), "{found}");
        assert_eq!(unknown(r#"{"name":1}"#), (false, "[]".to_owned()));
    }

    #[test]
    fn listed_fields_are_bounded() {
        let fields: Vec<String> =
            (0..1000).map(|i| format!("\"{i}{}\":0", "x".repeat(99))).collect();
        let (_, found) = parse::<Outer<'_>>(String::new(), &format!("{{{}}}", fields.join(",")));
        assert_eq!(found.len(), MAX_LISTED);
        assert!(serde_json::to_string(&found).unwrap().len() < MAX_LISTED * 300);
    }
}
