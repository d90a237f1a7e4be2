use serde_json::json;

use super::*;
use crate::Draft;

fn draft(when: Json, per: &[&str]) -> Draft {
    Draft {
        name: "exports".to_owned().into(),
        limit: 10.into(),
        window_seconds: 60.into(),
        selector: SelectorDraft {
            when: when.into(),
            per: per.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().into(),
            ..SelectorDraft::default()
        },
        ..Draft::default()
    }
}

fn messages(draft: Draft) -> Vec<String> {
    draft.validate(None).unwrap_err().into_iter().map(|error| error.message).collect()
}

#[test]
fn a_rule_over_attributes_needs_a_name_and_conditions_or_counters() {
    let spec = draft(json!({"path": "/v1/*"}), &["tenant"]).validate(None).unwrap();
    assert_eq!((spec.scope, spec.key()), (Scope::Attributes, "attributes:exports".to_owned()));
    assert_eq!(spec.display_name(), "exports");
    let selector = spec.selector.as_ref().unwrap();
    assert_eq!((selector.priority(), selector.stops()), (0, false));
    assert_eq!(Draft::from(&spec).validate(None), Ok(spec));

    let nameless = Draft { name: Input::Missing, ..draft(json!({}), &[]) };
    assert_eq!(messages(nameless), ["a rule with when or per needs a name"]);
    let wild = Draft { name: "a*".to_owned().into(), ..draft(json!({}), &[]) };
    assert_eq!(
        messages(wild),
        ["the name of a rule with when or per must not contain '*', '{' and '}'"]
    );
}

#[test]
fn subjects_of_a_wrong_type_are_refused() {
    let mut wrong = draft(json!({}), &[]);
    wrong.scope = Input::WrongType("a list");
    wrong.identifier_pattern = Input::WrongType("an object");
    let expected = [
        "scope must be a string, got a list",
        "identifier_pattern must be a string, got an object",
    ];
    assert_eq!(messages(wrong), expected);
}

#[test]
fn all_errors_are_reported_at_once() {
    let mut wrong = draft(json!({"a b": 1, "c": true, "d": {"x": 1, "min": "a"}}), &["", "e", "e"]);
    wrong.scope = "user".to_owned().into();
    wrong.selector.priority = 1001.into();
    wrong.limit = 0.into();
    let messages = messages(wrong);
    for expected in [
        "limit must be greater than 0",
        "when: \"a b\" is not the name of an attribute",
        "when.c: must be a string",
        "when.d: unknown key \"x\"",
        "when.d: min must be a number",
        "per: \"\" is not the name of an attribute",
        "per must not name an attribute twice",
        "priority must be from -1000 to 1000",
        "a rule has either scope and identifier_pattern, or when and per",
    ] {
        assert!(messages.iter().any(|message| message.starts_with(expected)), "{messages:?}");
    }
    assert_eq!(messages.len(), 9, "{messages:?}");
}

#[test]
fn sizes_are_bounded() {
    let many: serde_json::Map<_, _> = (0..17).map(|i| (format!("a{i}"), json!("x"))).collect();
    assert_eq!(messages(draft(Json::Object(many), &[])), ["when may have at most 16 conditions"]);
    let names: Vec<String> = (0..9).map(|i| format!("a{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(messages(draft(json!({}), &names)), ["per may have at most 8 attributes"]);
}

#[test]
fn an_update_keeps_what_it_leaves_out() {
    let current = draft(json!({"path": "/v1/*"}), &["tenant"]).validate(None).unwrap();
    let update = Draft { limit: 20.into(), window_seconds: 60.into(), ..Draft::default() };
    let updated = update.validate(Some(&current)).unwrap();
    assert_eq!((updated.limit, &updated.selector), (20, &current.selector));

    let mut update = Draft::from(&updated);
    update.selector.per = Input::Null;
    let updated = update.validate(Some(&current)).unwrap();
    assert_eq!(updated.selector.unwrap().per().count(), 0);

    // Scope and pattern turn it into a rule of subjects.
    let plain = Draft {
        scope: "user".to_owned().into(),
        identifier_pattern: "*".to_owned().into(),
        limit: 1.into(),
        window_seconds: 60.into(),
        ..Draft::default()
    };
    assert_eq!(plain.validate(Some(&current)).unwrap().selector, None);
}

#[test]
fn likely_mistakes_are_warned_about() {
    let reasons = |draft: Draft| {
        let warnings = draft.validate(None).unwrap().warnings();
        warnings.into_iter().map(|warning| (warning.field, warning.reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(draft(json!({"path": "/v1/*", "method": "GET"}), &["tenant"])), []);
    assert_eq!(reasons(draft(json!({}), &["path"])), [("per", "unbounded")]);
    assert_eq!(reasons(draft(json!({"id": {"prefix": "x"}}), &["id"])), [("per", "unbounded")]);
    assert_eq!(reasons(draft(json!({"path": ["/a", "/b"]}), &["path"])), []);
    let contradiction = json!({"path": {"equals": "a", "prefix": "b"}});
    assert_eq!(reasons(draft(contradiction, &[])), [("when", "never_matches")]);
    let absent = draft(json!({"tenant": {"exists": false}}), &["tenant"]);
    assert_eq!(reasons(absent)[0], ("per", "never_matches"));
    let mut exemption = draft(json!({"tenant": "internal"}), &[]);
    exemption.selector.stops = true.into();
    exemption.enabled = false.into();
    assert_eq!(reasons(exemption), [("stops", "exempts")]);
}
