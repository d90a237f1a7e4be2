//! `headgate rules export`

use std::fmt::Write;

use serde_json::{Value, json};

use crate::{
    concurrent_changes::run_before,
    harness::{Server, printed},
};

/// Names and patterns that YAML would not read as strings without quotes.
const ODD: [&str; 8] =
    ["null", "12", "yes", "- a: b # c", "\\\"'%@`", "\u{e9}\u{4e2d}\u{1f6b0}", "[x]*", "0x1F"];

fn rules(server: &Server) -> Vec<Value> {
    let listed = server.json(&["rules", "list"]);
    let mut rules = listed["rules"].as_array().unwrap().clone();
    for rule in &mut rules {
        for field in ["id", "created_at", "updated_at"] {
            rule.as_object_mut().unwrap().remove(field);
        }
    }
    rules.sort_by_key(Value::to_string);
    rules
}

#[test]
fn an_export_can_be_applied_to_another_server() {
    let server = Server::start(&[]);
    let mut drafts: Vec<Value> = ODD
        .iter()
        .map(|text| json!({"scope": "user", "identifier_pattern": text, "name": text, "limit": 1, "window_seconds": 60}))
        .collect();
    drafts.push(json!({
        "scope": "endpoint", "identifier_pattern": "/orders", "limit": 5, "window_seconds": 3600,
        "algorithm": "leaky_bucket", "burst": 2, "fail_mode": "local", "enabled": false,
        "lease": {"share_percent": 20, "hold_ms": 150},
    }));
    printed(&server.run_with(&["rules", "apply", "-f", "-"], &json!(drafts).to_string()));

    for options in [&[][..], &["--output", "json"]] {
        let export = server.run(&[&["rules", "export"], options].concat());
        let same = server.run_with(&["rules", "apply", "-f", "-", "--prune"], printed(&export));
        assert_eq!(printed(&same), "nothing to change (9 unchanged)\n");

        let other = Server::start(&[]);
        printed(&other.run_with(&["rules", "apply", "-f", "-"], printed(&export)));
        assert_eq!(rules(&other), rules(&server));
    }
}

#[test]
fn lists_of_several_pages_are_complete() {
    let server = Server::start(&[]);
    assert_eq!(printed(&server.run(&["rules", "export"])), "rules: []\n");
    let mut yaml = String::from("rules:\n");
    for i in 0..201 {
        writeln!(yaml, "- {{scope: user, identifier_pattern: u{i}, limit: 1, window_seconds: 60}}")
            .unwrap();
    }
    printed(&server.run_with(&["rules", "apply", "-f", "-"], &yaml));

    let export = server.run(&["rules", "export"]);
    assert_eq!(printed(&export).matches("- scope: user\n").count(), 201);
    assert_eq!(printed(&server.run(&["rules", "list"])).lines().count(), 202);
    assert_eq!(rules(&server).len(), 201);
}

#[test]
fn applies_and_exports_12_000_rules() {
    let server = Server::start(&[("HEADGATE__SERVER__REQUEST_TIMEOUT_SECONDS", "600")]);
    let rule = |i| json!({"scope": "user", "identifier_pattern": format!("u{i}"), "limit": 1, "window_seconds": 60});
    let rules: Vec<Value> = (0..12_000).map(rule).collect();
    let applied = server.run_with(&["rules", "apply", "-f", "-"], &json!(rules).to_string());
    let message = printed(&applied).lines().last();
    assert_eq!(message, Some("12000 created, 0 updated, 0 deleted, 0 unchanged"));
    let export = server.run(&["rules", "export"]);
    assert_eq!(printed(&export).matches("- scope: user\n").count(), 12_000);
    let same = server.run_with(&["rules", "apply", "-f", "-", "--prune"], printed(&export));
    assert_eq!(printed(&same), "nothing to change (12000 unchanged)\n");
}

#[test]
fn an_export_restarts_if_rules_change_in_between() {
    let server = Server::start(&[]);
    let rule = |i| json!({"scope": "user", "identifier_pattern": format!("u{i}"), "limit": 1, "window_seconds": 60});
    let rules: Vec<Value> = (0..150).map(rule).collect();
    printed(&server.run_with(&["rules", "apply", "-f", "-"], &json!(rules).to_string()));
    // Add a rule before the second page is read: without a restart, one rule would appear twice.
    let mut seconds = 0;
    let second_page = move |sent: &crate::concurrent_changes::Sent| {
        seconds += usize::from(sent.head.contains("page=2&"));
        seconds == 1 && sent.head.contains("page=2&")
    };
    let rival = ("POST", "/api/v1/ratelimit/rules", &rule(150));
    let export = run_before(&server, &["rules", "export"], rival, second_page);
    assert_eq!(printed(&export).matches("- scope: user\n").count(), 151);
    let same = server.run_with(&["rules", "apply", "-f", "-", "--prune"], printed(&export));
    assert_eq!(printed(&same), "nothing to change (151 unchanged)\n");
}
