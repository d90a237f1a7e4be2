use serde_json::json;

use super::*;

fn read(text: &str) -> Result<Drafts, String> {
    Drafts::parse(&Source::File("rules.yaml".into()), text).map_err(|error| error.to_string())
}

#[test]
fn fields_mean_what_their_names_say() {
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
fn a_list_alone_is_enough_and_json_is_yaml() {
    assert_eq!(read("- scope: user\n- scope: service\n").unwrap().rules().len(), 2);
    assert_eq!(
        read("[{\"scope\": \"user\", \"limit\": 1.5}]").unwrap().rules()[0]["limit"],
        json!(1.5)
    );
    assert_eq!(read("rules: []").unwrap().rules().len(), 0);
}

#[test]
fn a_file_that_lists_nothing_is_not_taken_for_an_empty_list() {
    for (text, got) in
        [("", "nothing"), ("rules:", "nothing"), ("# none\n", "nothing"), ("all", "a text")]
    {
        let told = read(text).unwrap_err();
        assert!(told.ends_with(&format!("`rules: []` is an empty one; got {got}")), "{told}");
    }
}

#[test]
fn everything_that_the_server_would_overlook_is_told_at_once() {
    let told = read("rulez: 1\nrules:\n  - fail_mod: open\n    limit: [1]\n  - 7\n").unwrap_err();
    let expected = "rules.yaml does not fit:\n  \
        rulez (rules.yaml:1): unknown key; known here: rules\n  \
        rules[0].fail_mod (rules.yaml:3): unknown key; known here: name, scope, identifier_pattern, limit, \
        window_seconds, algorithm, burst, fail_mode, enabled\n  \
        rules[0].limit (rules.yaml:4): expected a value, got a list\n  \
        rules[1] (rules.yaml:5): expected a rule with its fields, got a text";
    assert_eq!(told, expected);
}

#[test]
fn what_is_no_yaml_is_told_with_its_place() {
    let told = read("rules:\n  - scope: user\n    scope: user\n").unwrap_err();
    assert_eq!(told, "rules.yaml:3:5: \"scope\" stands here twice");
    assert!(read("rules: [").unwrap_err().starts_with("rules.yaml:"));
    assert!(read(&"[".repeat(100_000)).is_err());
}
