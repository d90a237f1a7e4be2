//! `headgate usage|explain|reset|audit`

use serde_json::json;

use crate::{
    harness::{Server, failure, printed, stdout},
    rules::create,
};

fn server() -> (Server, String) {
    let server = Server::start(&[]);
    let options =
        ["--scope", "user", "--pattern", "u*", "--limit", "3", "--window", "1h", "--name", "few"];
    let rule = create(&server, &options);
    (server, rule)
}

#[test]
fn usage_prints_the_counters_of_a_rule_and_subject() {
    let (server, rule) = server();
    printed(&server.run(&["check", "user", "u1", "--cost", "2"]));

    let used = server.run(&["usage", &rule, "--identifier", "u1"]);
    let lines: Vec<&str> = printed(&used).lines().collect();
    let expected = [
        &format!("rule         {rule}"),
        "name         few",
        "limit        3/1h",
        "algorithm    token_bucket",
        "enabled      yes",
        "used         2",
        "remaining    1",
    ];
    assert_eq!(lines[..7], expected);
    assert!(lines[7].starts_with("reset at     20") && lines[7].ends_with('Z'), "{lines:?}");
    assert_eq!(server.json(&["usage", &rule, "--identifier", "u1"])["used"], json!(2));

    let no_subject = server.run(&["usage", &rule]);
    assert!(
        printed(&no_subject).contains("\nused         (pass --identifier)\n"),
        "{no_subject:?}"
    );
    let other = server.run(&["usage", &rule, "--identifier", "x1"]);
    assert!(failure(&other).contains("identifier"), "{other:?}");
}

#[test]
fn usage_requires_an_identifier_only_for_patterns() {
    let (server, pattern) = server();
    let exact =
        create(&server, &["--scope", "user", "--pattern", "x", "--limit", "3", "--window", "1h"]);
    let shown = |arguments: &[&str]| {
        let output = server.run(&[&["usage"], arguments].concat());
        let lines = printed(&output).lines().skip(5).map(str::to_owned).collect::<Vec<_>>();
        lines.join("\n")
    };
    let nothing = "used         -\nremaining    -\nreset at     -";
    assert_eq!(shown(&[&exact]), nothing);
    assert_eq!(shown(&[&exact, "--identifier", "x"]), nothing);
    assert_eq!(shown(&[&pattern, "--identifier", "u9"]), nothing);
    assert!(shown(&[&pattern]).starts_with("used         (pass --identifier)\n"));
    printed(&server.run(&["check", "user", "x"]));
    assert!(shown(&[&exact]).starts_with("used         1\nremaining    2\n"));
}

#[test]
fn check_accepts_a_cost_and_a_dry_run() {
    let (server, _) = server();
    let remaining = |options: &[&str]| {
        server.json(&[&["check", "user", "u1"], options].concat())["remaining"].as_u64().unwrap()
    };
    assert_eq!(remaining(&["--dry-run"]), 3);
    assert_eq!(remaining(&["--cost", "2"]), 1);
    let denied = server.run(&["check", "user", "u1", "--cost", "2", "--dry-run"]);
    assert_eq!(denied.status.code(), Some(2), "{denied:?}");
    assert_eq!(remaining(&[]), 0);
}

#[test]
fn explain_prints_matching_rules_and_reasons() {
    let (server, rule) = server();
    let exact =
        ["--scope", "user", "--pattern", "u1", "--limit", "9", "--window", "1m", "--disabled"];
    let disabled = create(&server, &exact);
    let output = server.run(&["explain", "user", "u1"]);
    let lines: Vec<&str> = printed(&output).lines().collect();
    assert!(lines[0].starts_with("APPLIES  RULE  "), "{lines:?}");
    let line = |id: &str| {
        lines.iter().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{lines:?}"))
    };
    assert!(
        line(&rule).contains("  few ") && line(&rule).contains(" 3/1h  token_bucket "),
        "{lines:?}"
    );
    assert!(line(&disabled).contains(" 9/60s  token_bucket "), "{lines:?}");

    let explained = server.json(&["explain", "user", "u1"]);
    assert_eq!(explained["identifier"], json!("u1"));
    assert_eq!(explained["rules"].as_array().unwrap().len(), lines.len() - 1);

    let unknown = server.run(&["explain", "planet", "u1"]);
    assert!(failure(&unknown).contains("scope must be one of"), "{unknown:?}");
}

#[test]
fn reset_clears_the_usage_of_a_subject() {
    let (server, _) = server();
    for _ in 0..3 {
        printed(&server.run(&["check", "user", "u1"]));
    }
    assert_eq!(server.run(&["check", "user", "u1"]).status.code(), Some(2));
    let done = server.run(&["reset", "user", "u1", "--reason", "asked nicely"]);
    assert_eq!(printed(&done), "rate limit counter reset for user:u1\n");
    printed(&server.run(&["check", "user", "u1"]));
    assert_eq!(server.json(&["reset", "user", "u1"])["success"], json!(true));
}

#[test]
fn audit_prints_actor_target_and_change() {
    let (server, rule) = server();
    printed(&server.run(&["rules", "update", &rule, "--limit", "4"]));
    printed(&server.run(&["reset", "user", "u1", "--reason", "asked nicely"]));

    let output = server.run(&["audit"]);
    let lines: Vec<&str> = printed(&output).lines().collect();
    assert!(lines[0].starts_with("AT  ") && lines.len() == 4, "{lines:?}");
    let all = stdout(&output);
    assert!(all.contains("limit 3 -> 4\n") && all.contains("asked nicely\n"), "{all}");
    assert!(lines[1..].iter().all(|line| line.contains("  admin  ")), "{lines:?}");
    let named = lines.iter().filter(|line| line.contains(&format!(" ({rule})  "))).count();
    assert_eq!(named, 2, "by name and id: {lines:?}");

    let paged = server.run(&["audit", "--page-size", "2"]);
    assert!(printed(&paged).ends_with("\n3 entries; more with --page 2\n"), "{paged:?}");
    let entries = |options: &[&str]| {
        server.json(&[&["audit"], options].concat())["entries"].as_array().unwrap().len()
    };
    assert_eq!(entries(&["--page-size", "2", "--page", "2"]), 1);
    assert_eq!(entries(&["--actor", "nobody"]), 0);
    assert_eq!(entries(&["--target", &rule]), 2);
    assert_eq!(entries(&["--until", "2020-01-01T00:00:00Z"]), 0);
    let wrong = server.run(&["audit", "--since", "yesterday"]);
    assert!(failure(&wrong).contains("since must be a time such as"), "{wrong:?}");
}

#[test]
fn audit_marks_resets_with_unknown_outcome() {
    let server = Server::start(&[("HEADGATE__REDIS__URL", "redis://127.0.0.1:1")]);
    failure(&server.run(&["reset", "user", "u1", "--reason", "asked nicely"]));
    let output = server.run(&["audit"]);
    assert!(printed(&output).ends_with("  outcome unknown; asked nicely\n"), "{output:?}");
}
