//! The conditions of a rule over attributes, as JSON.

use headgate_ratelimit::{Input, Selector, SelectorDraft};
use serde_json::{Value as Json, json};

/// Converts conditions to JSON.
pub(super) fn to_json(selector: &Selector) -> Json {
    json!({
        "when": selector.when_json(),
        "per": selector.per().collect::<Vec<_>>(),
        "priority": selector.priority(),
        "stops": selector.stops(),
    })
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
    }
}

fn field<T>(value: Option<T>) -> Input<T> {
    value.map_or(Input::WrongType("invalid JSON"), Input::Given)
}
