//! The cost of a settlement, and the cost or total of a use: one number, or one for each check.

use std::fmt;

use headgate::Cost;
use headgate_ratelimit::{ReservationId, usecase::check::reservations::Costs};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use crate::rest::{error::Detail, field::Field};

/// The costs as they were sent.
#[derive(Debug, Default)]
pub(super) enum WireCosts<'a> {
    #[default]
    Missing,
    One(Field<'a>),
    List(Vec<Field<'a>>),
}

impl WireCosts<'_> {
    pub(super) const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing | Self::One(Field::Missing | Field::Null))
    }

    /// Returns the costs in the field `name`, or all that is invalid.
    pub(super) fn read(&self, name: &'static str) -> Result<Costs, Vec<Detail>> {
        match self {
            Self::Missing | Self::One(Field::Missing | Field::Null) => {
                Err(vec![Detail::new(name, "required", format!("{name} is required"))])
            }
            Self::One(field) => match units(field) {
                Ok(cost) => Ok(Costs::Each(cost)),
                Err((reason, message)) => {
                    Err(vec![Detail::new(name, reason, format!("{name} {message}"))])
                }
            },
            Self::List(fields) => list(name, fields),
        }
    }
}

fn list(name: &'static str, fields: &[Field<'_>]) -> Result<Costs, Vec<Detail>> {
    if fields.len() > ReservationId::MAX_CHECKS {
        let message = format!("{name} must have at most {} items", ReservationId::MAX_CHECKS);
        return Err(vec![Detail::new(name, "length", message)]);
    }
    let (mut costs, mut wrong) = (Vec::new(), Vec::new());
    for (i, field) in fields.iter().enumerate() {
        match units(field) {
            Ok(cost) => costs.push(cost),
            Err((reason, message)) => {
                let name = format!("{name}[{i}]");
                let message = format!("{name} {message}");
                wrong.push(Detail::at(name, reason, message));
            }
        }
    }
    if wrong.is_empty() { Ok(Costs::PerCheck(costs)) } else { Err(wrong) }
}

fn units(field: &Field<'_>) -> Result<u64, (&'static str, String)> {
    match field {
        Field::Number(units @ 0..) if units.unsigned_abs() <= Cost::MAX => Ok(units.unsigned_abs()),
        Field::Number(..0) => Err(("out_of_range", "must not be negative".to_owned())),
        Field::Number(_) => Err(("out_of_range", format!("must be at most {}", Cost::MAX))),
        other => Err(("wrong_type", format!("must be a whole number, got {}", other.kind()))),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireCosts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyCosts)
    }
}

struct AnyCosts;

impl<'de> Visitor<'de> for AnyCosts {
    type Value = WireCosts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = items.next_element()? {
            // One more than the maximum is enough to refuse them.
            if fields.len() <= ReservationId::MAX_CHECKS {
                fields.push(field);
            }
        }
        Ok(WireCosts::List(fields))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(WireCosts::One(Field::Number(number)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(WireCosts::One(Field::Number(i64::try_from(number).unwrap_or(i64::MAX))))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(WireCosts::One(Field::Other("a fraction")))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(WireCosts::One(Field::Other("a string")))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(WireCosts::One(Field::Bool(value)))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(WireCosts::Missing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        use serde::de::IgnoredAny;
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(WireCosts::One(Field::Other("an object")))
    }
}
