//! The limit of a rule as it is sent and shown: a number, or limits by plan.

use headgate_ratelimit::{Input, RuleSpec, Selector};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;

use super::selector::kind;
use crate::rest::unique_json::UniqueJson;

/// A limit as it was sent.
#[derive(Debug, Default)]
pub(super) enum LimitField {
    #[default]
    Missing,
    Null,
    Number(i64),
    /// Limits by the value of an attribute.
    ByPlan(Json),
    /// A value of another type, by its name.
    Other(&'static str),
}

/// A limit as it is shown.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WireLimitOfRule {
    Number(u32),
    ByPlan(Json),
}

// === impl LimitField ===

impl LimitField {
    /// The field as input for a number, and for limits by plan.
    pub(super) fn into_inputs(self) -> (Input<i64>, Input<Json>) {
        match self {
            Self::Missing => (Input::Missing, Input::Missing),
            Self::Null => (Input::Null, Input::Missing),
            Self::Number(number) => (Input::Given(number), Input::Missing),
            Self::ByPlan(json) => (Input::Missing, Input::Given(json)),
            Self::Other(kind) => (Input::WrongType(kind), Input::Missing),
        }
    }
}

impl<'de> Deserialize<'de> for LimitField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let UniqueJson(json) = UniqueJson::deserialize(deserializer)?;
        Ok(match json {
            Json::Null => Self::Null,
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Number(number),
                // No valid number is this large: larger ones become the maximum.
                (None, Some(_)) => Self::Number(i64::MAX),
                (None, None) => Self::Other("a fraction"),
            },
            json @ Json::Object(_) => Self::ByPlan(json),
            other => Self::Other(kind(&other)),
        })
    }
}

impl From<&RuleSpec> for WireLimitOfRule {
    fn from(spec: &RuleSpec) -> Self {
        match spec.selector.as_deref().and_then(Selector::limits) {
            Some(limits) => Self::ByPlan(limits.to_json()),
            None => Self::Number(spec.limit),
        }
    }
}
