//! Fields in JSON as drafts.

use headgate_ratelimit::{Draft, Input, LeaseDraft, SelectorDraft};
use serde_json::{Map, Value as Json};

/// Returns the draft of a rule whose fields are JSON, as in a file or in a response of a server.
pub fn draft(fields: &Map<String, Json>) -> Draft {
    let field = |name: &str| fields.get(name);
    // An object is limits by plan, anything else the one limit of the rule.
    let (by_plan, limit) = match field("limit") {
        Some(value @ Json::Object(_)) => (Some(value), None),
        other => (None, other),
    };
    Draft {
        name: text(field("name")),
        scope: text(field("scope")),
        identifier_pattern: text(field("identifier_pattern")),
        limit: number(limit),
        window_seconds: number(field("window_seconds")),
        algorithm: text(field("algorithm")),
        burst: number(field("burst")),
        fail_mode: text(field("fail_mode")),
        lease: read(field("lease"), |value| {
            let lease = value.as_object()?;
            Some(LeaseDraft {
                share_percent: number(lease.get("share_percent")),
                hold_ms: number(lease.get("hold_ms")),
            })
        }),
        enabled: read(field("enabled"), Json::as_bool),
        selector: SelectorDraft {
            when: read(field("when"), |value| value.is_object().then(|| value.clone())),
            per: read(field("per"), texts),
            priority: number(field("priority")),
            stops: read(field("stops"), Json::as_bool),
            limits: read(by_plan, |value| Some(value.clone())),
        },
    }
}

fn read<T>(value: Option<&Json>, convert: impl FnOnce(&Json) -> Option<T>) -> Input<T> {
    match value {
        None => Input::Missing,
        Some(Json::Null) => Input::Null,
        Some(value) => convert(value).map_or_else(|| Input::WrongType(kind(value)), Input::Given),
    }
}

fn text(value: Option<&Json>) -> Input<String> {
    read(value, |value| value.as_str().map(str::to_owned))
}

fn number(value: Option<&Json>) -> Input<i64> {
    read(value, Json::as_i64)
}

fn texts(value: &Json) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// The name of a type in messages.
const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}
