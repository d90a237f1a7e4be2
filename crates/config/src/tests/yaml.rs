use std::iter;

use super::*;

#[test]
fn invalid_yaml_is_reported_by_line_and_column() {
    let cases = [
        ("a: b: c\n", "config.yaml:1:5: mapping values are not allowed in this context"),
        ("a: 1\na: 2\n", "config.yaml:2:1: duplicate key \"a\""),
        ("a: &x [*x]\n", "config.yaml:1:8: alias within its own anchor"),
        ("a: *x\n", "config.yaml:1:4: while parsing node, found unknown anchor"),
        ("a: &x b\nc:\n  <<: *x\n", "config.yaml:3:3: expected a section"),
        ("? [a]\n: b\n", "config.yaml:1:3: expected a key"),
        ("a: 1\n---\nb: 2\n", "config.yaml:2:1: expected one YAML document, found a second one"),
    ];
    for (yaml, expected) in cases {
        assert_eq!(problems(yaml, &[]), expected, "{yaml}");
    }
}

#[test]
fn anchors_aliases_and_merge_keys_are_followed() {
    let config = load("server: {port: &port 8081}\ndatabase: {port: *port}\n", &[]).unwrap();
    assert_eq!(config.server.port.get(), 8081);
    assert_eq!(config.database.port.unwrap().get(), 8081);
    let merged = "database: {<<: [{port: 5433}, {port: 1, name: n, user: u}], name: own}\n";
    let config = load(merged, &[]).unwrap().database;
    assert_eq!((config.name.as_str(), config.user.as_str()), ("own", "u"));
    assert_eq!(config.port.unwrap().get(), 5433);
}

#[test]
fn aliases_of_aliases_are_bounded() {
    for (times, expected) in [(10, "aliases expand to too much data"), (1, "nested too deeply")] {
        let line = |place: usize| {
            let before = format!("*a{}, ", place - 1).repeat(times);
            format!("a{place}: &a{place} [{before}]\n")
        };
        let yaml: String =
            iter::once("a0: &a0 [x]\n".to_owned()).chain((1..100).map(line)).collect();
        let message = problems(&yaml, &[]);
        assert!(message.contains(expected), "{message}");
    }
    let long = "x".repeat(500_000);
    for yaml in [
        format!("a: &a {long}\nb: [{}]\n", "*a, ".repeat(1_000)),
        format!("a: &a {{{long}: 1}}\nb: [{}]\n", "*a, ".repeat(1_000)),
    ] {
        let message = problems(&yaml, &[]);
        assert!(message.contains("aliases expand to too much data"), "{}", message.len());
    }
}

#[test]
fn a_root_that_is_not_a_section_is_rejected() {
    for yaml in ["- a\n", "a\n"] {
        let message = problems(yaml, &[]);
        assert!(message.contains("expected a section, got a"), "{yaml}: {message}");
    }
}
