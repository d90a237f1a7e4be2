use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Drafts, String> {
    Drafts::parse(&Source::File("rules.yaml".into()), text).map_err(|error| error.to_string())
}

#[test]
fn scalars_are_typed_by_their_field() {
    let text = "rules:\n\
        \x20 - scope: user\n    identifier_pattern: 12\n    limit: 100\n    window_seconds: 60\n    enabled: false\n\
        \x20 - {\"scope\": \"service\", \"identifier_pattern\": \"*\", \"limit\": \"7\", \"burst\": null, \"name\": true}\n";
    let drafts = read(text).unwrap();
    let expected = json!([
        {"scope": "user", "identifier_pattern": "12", "limit": 100, "window_seconds": 60, "enabled": false},
        {"scope": "service", "identifier_pattern": "*", "limit": "7", "burst": null, "name": "true"},
    ]);
    assert_eq!(json!(drafts.rules()), expected);
    assert_eq!(drafts.place("rules[0].limit").unwrap(), "rules.yaml:4");
    assert_eq!(drafts.place("rules[1].window_seconds").unwrap(), "rules.yaml:7");
    assert_eq!(drafts.place("prune"), None);
}

#[test]
fn conditions_are_nested_values() {
    let text = "- name: exports\n  when:\n    path: /v1/exports/*\n    method: [POST, 7]\n    \
        size: {min: 1.5, exists: true}\n    code: '7'\n  per: [tenant, user]\n  stops: true\n";
    let expected = json!([{
        "name": "exports",
        "when": {
            "path": "/v1/exports/*",
            "method": ["POST", 7],
            "size": {"min": 1.5, "exists": true},
            "code": "7",
        },
        "per": ["tenant", "user"],
        "stops": true,
    }]);
    assert_eq!(json!(read(text).unwrap().rules()), expected);
}

#[test]
fn accepts_a_bare_list_and_json() {
    assert_eq!(read("- scope: user\n- scope: service\n").unwrap().rules().len(), 2);
    assert_eq!(
        read("[{\"scope\": \"user\", \"limit\": 1.5}]").unwrap().rules()[0]["limit"],
        json!(1.5)
    );
    assert_eq!(read("rules: []").unwrap().rules().len(), 0);
}

#[test]
fn an_empty_list_must_be_explicit() {
    for (text, got) in
        [("", "nothing"), ("rules:", "nothing"), ("# none\n", "nothing"), ("all", "a string")]
    {
        let error = read(text).unwrap_err();
        assert!(error.ends_with(&format!("(write `rules: []` for none), got {got}")), "{error}");
    }
}

#[test]
fn reports_all_unknown_keys_and_wrong_types_at_once() {
    let error = read("rulez: 1\nrules:\n  - fail_mod: open\n    limit: [1]\n  - 7\n").unwrap_err();
    let expected = "rules.yaml is invalid:\n  \
        rulez (rules.yaml:1): unknown key; known here: rules\n  \
        rules[0].fail_mod (rules.yaml:3): unknown key; known here: name, scope, identifier_pattern, limit, \
        window_seconds, algorithm, burst, fail_mode, lease, when, per, priority, stops, enabled\n  \
        rules[0].limit (rules.yaml:4): expected a value, got a list\n  \
        rules[1] (rules.yaml:5): expected a mapping with the fields of a rule, got a string";
    assert_eq!(error, expected);
}

#[test]
fn a_lease_has_two_numbers() {
    let drafts = read("- {scope: user, lease: {share_percent: 10, hold_ms: 0200ms}}").unwrap();
    let expected = json!([{"scope": "user", "lease": {"share_percent": 10, "hold_ms": "0200ms"}}]);
    assert_eq!(json!(drafts.rules()), expected);
    assert_eq!(drafts.place("rules[0].lease.hold_ms").unwrap(), "rules.yaml:1");
    let drafts = read("- lease: 10%/200ms\n- lease:\n").unwrap();
    assert_eq!(json!(drafts.rules()), json!([{"lease": "10%/200ms"}, {"lease": null}]));
    let error = read("- lease: {share: 10, hold_ms: [1]}\n").unwrap_err();
    let expected = "rules.yaml is invalid:\n  \
        rules[0].lease.share (rules.yaml:1): unknown key; known here: share_percent, hold_ms\n  \
        rules[0].lease.hold_ms (rules.yaml:1): expected a value, got a list";
    assert_eq!(error, expected);
}

#[test]
fn yaml_errors_name_line_and_column() {
    let error = read("rules:\n  - scope: user\n    scope: user\n").unwrap_err();
    assert_eq!(error, "rules.yaml:3:5: duplicate key \"scope\"");
    assert!(read("rules: [").unwrap_err().starts_with("rules.yaml:"));
    assert!(read(&"[".repeat(100_000)).is_err());
}

#[test]
fn valid_rules_are_returned_in_order_and_all_problems_at_once() {
    let text = "- {name: a, when: {path: /v1/*}, per: [user], limit: 5, window_seconds: 60}\n\
        - {scope: user, identifier_pattern: '*', limit: 7, window_seconds: 60, lease: {share_percent: 10, hold_ms: 50}}\n";
    let specs = read(text).unwrap().validate().unwrap();
    assert_eq!(specs.iter().map(|spec| spec.limit).collect::<Vec<_>>(), [5, 7]);
    assert!(specs[0].selector.is_some() && specs[1].lease.is_some());

    let text = "- {name: a, when: {path: [1, {}]}, per: user, limit: x, window_seconds: 60}\n\
        - {scope: planet, identifier_pattern: '*', limit: 0, window_seconds: 60}\n\
        - {scope: user, identifier_pattern: a, limit: 1, window_seconds: 60}\n\
        - {scope: user, identifier_pattern: a, limit: 2, window_seconds: 60}\n";
    let error = read(text).unwrap().validate().unwrap_err().to_string();
    for expected in [
        "rules[0].when (rules.yaml:1): when.path: an item must be a string or a number",
        "rules[0].per (rules.yaml:1): per must be a list of strings, got a string",
        "rules[0].limit (rules.yaml:1): limit must be a whole number, got a string",
        "rules[1].scope (rules.yaml:2): ",
        "rules[1].limit (rules.yaml:2): limit must be greater than 0",
        "rules[3].window_seconds (rules.yaml:4): has the same name or subjects and window as rules[2]",
    ] {
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}
