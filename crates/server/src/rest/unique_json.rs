//! Nested JSON without duplicate keys. Serde's own value keeps the last of them, so that a reader of
//! the body may see another limit than the one in force.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value as Json};

/// A value whose objects have no duplicate keys.
#[derive(Debug, Default)]
pub(super) struct UniqueJson(pub(super) Json);

struct AnyJson;

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson).map(Self)
    }
}

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key {key:?}")));
            }
            let UniqueJson(value) = entries.next_value()?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_serde() {
        let text = r#"{"a":[1,-1,1.5,18446744073709551615,null,true,"\u00e9",{}],"b":{"a":1}}"#;
        let UniqueJson(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Json>(text).unwrap());
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":2}"#, r#"[{"b":{"a":1,"\u0061":1}}]"#] {
            let error = serde_json::from_str::<UniqueJson>(text).unwrap_err().to_string();
            assert!(error.starts_with("duplicate key \"a\" at line 1"), "{error}");
        }
    }
}
