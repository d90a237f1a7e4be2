//! The conditions of a rule over attributes, as JSON.

use headgate_ratelimit::{Input, Selector, SelectorDraft};
use serde_json::{Value as Json, json};

/// Limits by plan.
pub(super) const LIMITS: &str = "limits";

/// Converts conditions to JSON.
pub(super) fn to_json(selector: &Selector) -> Json {
    let mut json = json!({
        "when": selector.when_json(),
        "per": selector.per().collect::<Vec<_>>(),
        "priority": selector.priority(),
        "stops": selector.stops(),
    });
    // An older version ignores it, and knows the number in the column of the limit.
    if let Some(limits) = selector.limits() {
        json[LIMITS] = limits.to_json();
    }
    json
}

/// Reads conditions; what is not as it was written fails the validation of the rule.
pub(super) fn read(text: Option<String>) -> SelectorDraft {
    let Some(text) = text else { return SelectorDraft::default() };
    let json: Json = serde_json::from_str(&text).unwrap_or_default();
    let names =
        |items: &Vec<Json>| items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    SelectorDraft {
        when: json.get("when").cloned().map_or(Input::WrongType("invalid JSON"), Input::Given),
        per: field(json["per"].as_array().and_then(names)),
        priority: field(json["priority"].as_i64()),
        stops: field(json["stops"].as_bool()),
        limits: json.get(LIMITS).cloned().map_or(Input::Missing, Input::Given),
    }
}

fn field<T>(value: Option<T>) -> Input<T> {
    value.map_or(Input::WrongType("invalid JSON"), Input::Given)
}
