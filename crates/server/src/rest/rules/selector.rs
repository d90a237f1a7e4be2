//! The conditions of a rule over attributes as they are sent, and warnings about them.

use headgate_ratelimit::{Input, Warning};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::rest::unique_json::UniqueJson;

/// A field with a nested value.
#[derive(Debug, Default)]
pub(in crate::rest) enum JsonField {
    #[default]
    Missing,
    Null,
    Given(Json),
}

/// A warning about a rule: it is valid, and probably not what was meant.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleWarning)]
pub(in crate::rest) struct WireWarning {
    field: &'static str,
    /// Machine-readable reason.
    reason: &'static str,
    message: String,
}

// === impl JsonField ===

impl JsonField {
    /// The field as input for an object.
    pub(in crate::rest) fn into_object(self) -> Input<Json> {
        match self {
            Self::Missing => Input::Missing,
            Self::Null => Input::Null,
            Self::Given(json @ Json::Object(_)) => Input::Given(json),
            Self::Given(other) => Input::WrongType(kind(&other)),
        }
    }

    /// The field as input for a list of texts.
    pub(super) fn into_texts(self) -> Input<Vec<String>> {
        let items = match self {
            Self::Missing => return Input::Missing,
            Self::Null => return Input::Null,
            Self::Given(Json::Array(items)) => items,
            Self::Given(other) => return Input::WrongType(kind(&other)),
        };
        let text = |item| match item {
            Json::String(text) => Ok(text),
            _ => Err(Input::WrongType("a list of other values")),
        };
        items
            .into_iter()
            .map(text)
            .collect::<Result<_, _>>()
            .map_or_else(|wrong| wrong, Input::Given)
    }
}

impl<'de> Deserialize<'de> for JsonField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match UniqueJson::deserialize(deserializer)? {
            UniqueJson(Json::Null) => Self::Null,
            UniqueJson(json) => Self::Given(json),
        })
    }
}

pub(super) const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

impl From<Warning> for WireWarning {
    fn from(Warning { field, reason, message }: Warning) -> Self {
        Self { field, reason, message }
    }
}
