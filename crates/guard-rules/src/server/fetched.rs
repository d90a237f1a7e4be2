//! Rules and overrides as a server sends them.

use headgate::Timestamp;
use headgate_ratelimit::{
    FieldError, Input, OverrideDraft, OverrideId, RuleId, RuleOverride, RuleSpec,
};
use headgate_rules_file::draft;
use serde_json::{Map, Value as Json, json};

use crate::{RuleSet, RulesError};

/// What was fetched of one revision.
#[derive(Clone)]
pub(super) struct Fetched {
    pub(super) rules: Vec<Map<String, Json>>,
    pub(super) overrides: Vec<Map<String, Json>>,
}

impl Fetched {
    /// Puts the rules and overrides in force, if all of them are valid.
    pub(super) fn install(&self, rules: &RuleSet) -> Result<(), RulesError> {
        let parsed = self.rules.iter().map(rule).collect::<Result<_, _>>()?;
        let overrides = self.overrides.iter().map(rule_override).collect::<Result<_, _>>()?;
        rules.replace_rules(parsed, overrides)
    }

    pub(super) fn to_json(&self) -> Json {
        json!({"rules": self.rules, "overrides": self.overrides})
    }

    pub(super) fn from_json(json: Json) -> Option<Self> {
        let Json::Object(mut fields) = json else { return None };
        let mut list = |name| objects(fields.remove(name)?);
        Some(Self { rules: list("rules")?, overrides: list("overrides")? })
    }
}

/// Returns the objects of a list; `None` if it is not a list of objects.
pub(super) fn objects(list: Json) -> Option<Vec<Map<String, Json>>> {
    let Json::Array(items) = list else { return None };
    let object = |item| match item {
        Json::Object(fields) => Some(fields),
        _ => None,
    };
    items.into_iter().map(object).collect()
}

/// Returns the id and the fields of a rule of a server.
fn rule(fields: &Map<String, Json>) -> Result<(RuleId, RuleSpec), RulesError> {
    let id: RuleId = id(fields).ok_or_else(|| RulesError::Server("a rule has no id".to_owned()))?;
    let spec = draft(fields).validate(None);
    Ok((id, spec.map_err(|errors| unknown(&format!("rule {id}"), errors))?))
}

/// Returns an override of a server.
fn rule_override(fields: &Map<String, Json>) -> Result<RuleOverride, RulesError> {
    let id: OverrideId =
        id(fields).ok_or_else(|| RulesError::Server("an override has no id".to_owned()))?;
    let text = |name| match fields.get(name).and_then(Json::as_str) {
        Some(text) => Input::Given(text.to_owned()),
        None => Input::Missing,
    };
    let draft = OverrideDraft {
        rule_id: text("rule_id"),
        subject: fields.get("subject").cloned().map_or(Input::Missing, Input::Given),
        limit: fields.get("limit").and_then(Json::as_i64).map_or(Input::Missing, Input::Given),
        until: match text("until") {
            Input::Given(time) => Input::Given(parse_time(&time)),
            _ => Input::Missing,
        },
        // It decides nothing.
        reason: Input::Missing,
    };
    let spec = draft.validate(None);
    let spec = spec.map_err(|errors| unknown(&format!("override {id}"), errors))?;
    let at = Timestamp::from_micros(0);
    Ok(RuleOverride { id, spec, created_at: at, updated_at: at })
}

fn id<T: std::str::FromStr>(fields: &Map<String, Json>) -> Option<T> {
    fields.get("id").and_then(Json::as_str)?.parse().ok()
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let micros = text.parse::<jiff::Timestamp>().ok()?.as_microsecond();
    u64::try_from(micros).ok().map(Timestamp::from_micros)
}

/// The error for fields that a newer server may have, and this version does not know.
fn unknown(what: &str, errors: Vec<FieldError>) -> RulesError {
    let messages: Vec<String> = errors.into_iter().map(|error| error.message).collect();
    RulesError::Server(format!("{what} is unknown to this version: {}", messages.join("; ")))
}
