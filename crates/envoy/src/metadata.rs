//! The metadata of a limit: any YAML, sent to Envoy as a `google.protobuf.Struct`.

use std::fmt;

use headgate_config::TYPED;
use prost_types::{ListValue, Struct, Value, value::Kind};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

/// Metadata that Envoy is sent while a limit has room.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(pub Struct);

impl Metadata {
    /// Adds the keys of `other` that are missing here; sections that both have are merged.
    pub fn merge(&mut self, other: &Self) {
        merge(&mut self.0, &other.0);
    }

    /// Returns true if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.fields.is_empty()
    }
}

fn merge(into: &mut Struct, from: &Struct) {
    for (key, value) in &from.fields {
        let known = into.fields.entry(key.clone()).or_insert_with(|| value.clone());
        if let (Some(Kind::StructValue(known)), Some(Kind::StructValue(more))) =
            (&mut known.kind, &value.kind)
        {
            merge(known, more);
        }
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Section).map(Self)
    }
}

/// A value with the type that YAML gives it.
struct Field(Value);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TYPED, Typed).map(|kind| Self(value(kind)))
    }
}

const fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

struct Section;

impl<'de> Visitor<'de> for Section {
    type Value = Struct;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Struct, A::Error> {
        let mut all = Struct::default();
        while let Some((key, Field(value))) = map.next_entry::<String, Field>()? {
            all.fields.insert(key, value);
        }
        Ok(all)
    }
}

struct Typed;

impl<'de> Visitor<'de> for Typed {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::NullValue(0))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::BoolValue(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::NumberValue(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::StringValue(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut values = Vec::new();
        while let Some(Field(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Kind::ListValue(ListValue { values }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Kind, A::Error> {
        Section.visit_map(map).map(Kind::StructValue)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use headgate_config::YamlDocument;

    use super::*;

    fn metadata(yaml: &str) -> Metadata {
        YamlDocument::parse(Path::new("test.yaml"), yaml).unwrap().read().unwrap()
    }

    #[test]
    fn values_have_the_types_that_yaml_gives_them() {
        let Metadata(all) = metadata(
            "text: word\nquoted: \"5\"\nnumber: -2.5\ncount: 7\nyes: true\nno: ~\nversion: 1.2.3\n\
             infinity: inf\nlist: [1, {a: b}]\n",
        );
        let kind = |key: &str| all.fields[key].kind.clone().unwrap();
        assert_eq!(kind("text"), Kind::StringValue("word".to_owned()));
        assert_eq!(kind("quoted"), Kind::StringValue("5".to_owned()));
        assert_eq!(kind("number"), Kind::NumberValue(-2.5));
        assert_eq!(kind("count"), Kind::NumberValue(7.0));
        assert_eq!(kind("yes"), Kind::BoolValue(true));
        assert_eq!(kind("no"), Kind::NullValue(0));
        assert_eq!(kind("version"), Kind::StringValue("1.2.3".to_owned()));
        assert_eq!(kind("infinity"), Kind::StringValue("inf".to_owned()));
        let Kind::ListValue(ListValue { values }) = kind("list") else { panic!("{all:?}") };
        assert_eq!(values[0].kind, Some(Kind::NumberValue(1.0)));
        assert_eq!(values[1].kind, Some(Kind::StructValue(metadata("a: b").0)));
    }

    #[test]
    fn merging_keeps_the_first_value_and_merges_sections() {
        let mut first = metadata("name: one\nservice: {name: a, tier: 1}");
        first.merge(&metadata("name: two\nservice: {name: b, zone: z}\nmore: true"));
        let expected = "name: one\nservice: {name: a, tier: 1, zone: z}\nmore: true";
        assert_eq!(first, metadata(expected));
    }
}
