//! The lease of a rule, before validation.

use std::{borrow::Cow, fmt};

use headgate_ratelimit::{Input, LeaseDraft};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use crate::rest::field::Field;

/// The value of the field: an object with two numbers, or what was sent instead.
#[derive(Debug, Default)]
pub(super) enum LeaseField<'a> {
    #[default]
    Missing,
    Null,
    Lease {
        share_percent: Field<'a>,
        hold_ms: Field<'a>,
    },
    /// Another value, by its kind.
    Other(&'static str),
}

impl LeaseField<'_> {
    /// The field as input.
    pub(super) fn into_draft(self) -> Input<LeaseDraft> {
        match self {
            Self::Missing => Input::Missing,
            Self::Null => Input::Null,
            Self::Lease { share_percent, hold_ms } => Input::Given(LeaseDraft {
                share_percent: share_percent.into_number(),
                hold_ms: hold_ms.into_number(),
            }),
            Self::Other(kind) => Input::WrongType(kind),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LeaseField<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyLease)
    }
}

struct AnyLease;

impl<'de> Visitor<'de> for AnyLease {
    type Value = LeaseField<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(LeaseField::Other("a string"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(LeaseField::Other("a number"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(LeaseField::Other("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(LeaseField::Other("a number"))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(LeaseField::Other("a boolean"))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LeaseField::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LeaseField::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let (mut share_percent, mut hold_ms) = (Field::Missing, Field::Missing);
        let mut unknown = false;
        while let Some(name) = entries.next_key::<Cow<'de, str>>()? {
            let (field, name) = match &*name {
                "share_percent" => (&mut share_percent, "share_percent"),
                "hold_ms" => (&mut hold_ms, "hold_ms"),
                _ => {
                    unknown = true;
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if !matches!(field, Field::Missing) {
                return Err(A::Error::duplicate_field(name));
            }
            *field = entries.next_value()?;
        }
        Ok(if unknown {
            LeaseField::Other("an object with other fields")
        } else {
            LeaseField::Lease { share_percent, hold_ms }
        })
    }
}
