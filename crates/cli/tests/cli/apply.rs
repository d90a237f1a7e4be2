//! `headgate rules apply`

use std::{
    fs,
    process::{Command, Stdio},
};

use headgate_testkit::{Skip, require};
use serde_json::json;

use crate::harness::{Server, failure, json, printed};

const TWO: &str = "\
rules:
  - scope: user
    identifier_pattern: '*'
    limit: 100
    window_seconds: 60
  - scope: user
    identifier_pattern: u1
    limit: 10
    window_seconds: 60
";

/// Writes `yaml` beside the server and applies it.
fn apply(server: &Server, yaml: &str, options: &[&str]) -> std::process::Output {
    fs::write(server.folder().join("rules.yaml"), yaml).unwrap();
    server.run(&[&["rules", "apply", "-f", "rules.yaml"], options].concat())
}

fn count(server: &Server) -> usize {
    server.json(&["rules", "list"])["rules"].as_array().unwrap().len()
}

#[test]
fn prints_and_applies_the_difference() {
    let server = Server::start(&[]);
    let first = apply(&server, TWO, &[]);
    let expected =
        "+ user:* 100/60s\n+ user:u1 10/60s\n2 created, 0 updated, 0 deleted, 0 unchanged\n";
    assert_eq!(printed(&first), expected);

    let raised = TWO.replace("limit: 10\n", "limit: 20\n    fail_mode: closed\n");
    let second = apply(&server, &raised, &[]);
    let expected = "~ user:u1 60s: fail_mode none -> \"closed\", limit 10 -> 20\n\
                    0 created, 1 updated, 0 deleted, 1 unchanged\n";
    assert_eq!(printed(&second), expected);

    let again = apply(&server, &raised, &[]);
    assert_eq!(printed(&again), "nothing to change (2 unchanged)\n");

    let leased = raised.replace(
        "fail_mode: closed\n",
        "fail_mode: closed\n    lease: {share_percent: 10, hold_ms: 200}\n",
    );
    let third = apply(&server, &leased, &[]);
    let expected = "~ user:u1 60s: lease none -> {";
    assert!(printed(&third).starts_with(expected), "{third:?}");
    assert!(printed(&apply(&server, &leased, &[])).starts_with("nothing to change"));
    apply(&server, &raised, &[]);

    // A field that is left out is removed.
    let back = apply(&server, TWO, &[]);
    assert!(
        printed(&back).starts_with("~ user:u1 60s: fail_mode \"closed\" -> none, limit 20 -> 10\n"),
        "{back:?}"
    );
}

#[test]
fn fields_other_than_defaults_are_printed() {
    let server = Server::start(&[]);
    let rule = "- {scope: endpoint, identifier_pattern: /orders, limit: 5, window_seconds: 3600, algorithm: leaky_bucket, \
                burst: 2, fail_mode: local, enabled: false, name: Orders}";
    let output = apply(&server, rule, &[]);
    let expected =
        "+ endpoint:/orders 5/1h, leaky_bucket, burst 2, fail local, disabled, named \"Orders\"\n";
    assert!(printed(&output).starts_with(expected), "{output:?}");
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = Server::start(&[]);
    let output = apply(&server, TWO, &["--dry-run"]);
    let expected = "+ user:* 100/60s\n+ user:u1 10/60s\n\
                    2 to create, 0 to update, 0 to delete, 0 unchanged (dry run: nothing was changed)\n";
    assert_eq!(printed(&output), expected);
    assert_eq!(count(&server), 0);

    let plan = json(&apply(&server, TWO, &["--dry-run", "--output", "json"]));
    assert_eq!((&plan["applied"], plan["created"].as_array().unwrap().len()), (&json!(false), 2));
    let plan = json(&apply(&server, TWO, &["--output", "json"]));
    assert_eq!((&plan["applied"], plan["created"].as_array().unwrap().len()), (&json!(true), 2));
}

#[test]
fn rules_are_deleted_only_with_prune() {
    let server = Server::start(&[]);
    printed(&apply(&server, TWO, &[]));
    let one = "[{\"scope\": \"service\", \"identifier_pattern\": \"billing\", \"limit\": 5, \"window_seconds\": 3600}]";
    let kept = server.run_with(&["rules", "apply", "-f", "-"], one);
    assert_eq!(
        printed(&kept),
        "+ service:billing 5/1h\n1 created, 0 updated, 0 deleted, 2 unchanged\n"
    );

    // Without a terminal, --prune is confirmation enough.
    let pruned = server.run_with(&["rules", "apply", "-f", "-", "--prune"], one);
    let expected =
        "- user:u1 10/60s\n- user:* 100/60s\n0 created, 0 updated, 2 deleted, 1 unchanged\n";
    assert_eq!(printed(&pruned), expected);
    assert_eq!(count(&server), 1);

    let emptied = server.run_with(&["rules", "apply", "-f", "-"], "");
    assert!(
        failure(&emptied).contains("standard input is invalid:\n  expected a list of rules"),
        "{emptied:?}"
    );
    printed(&server.run_with(&["rules", "apply", "-f", "-", "--prune"], "rules: []"));
    assert_eq!(count(&server), 0);
}

#[test]
fn one_invalid_rule_rejects_the_whole_file() {
    let server = Server::start(&[]);
    let bad = format!("{TWO}  - scope: planet\n    limit: 0\n    window_seconds: 1m\n");
    let output = apply(&server, &bad, &[]);
    let expected = "headgate: validation failed\n  \
        rules[2].scope (rules.yaml:10): scope must be one of: service, user, endpoint\n  \
        rules[2].identifier_pattern (rules.yaml:10): identifier_pattern is required\n  \
        rules[2].limit (rules.yaml:11): limit must be greater than 0\n  \
        rules[2].window_seconds (rules.yaml:12): window_seconds must be a whole number, got a string\n\
        (SYS_RATELIMIT_VALIDATION_ERROR, request req_";
    assert!(failure(&output).starts_with(expected), "{output:?}");

    let twice =
        format!("{TWO}  - {{scope: user, identifier_pattern: u1, limit: 9, window_seconds: 60}}\n");
    assert!(failure(&apply(&server, &twice, &[])).contains("SYS_RATELIMIT_VALIDATION_ERROR"));
    assert_eq!(count(&server), 0);
}

#[test]
fn errors_in_a_file_name_its_line() {
    let server = Server::start(&[]);
    let output = apply(&server, &TWO.replace("limit: 10\n", "limits: 10\n"), &[]);
    let expected = "headgate: rules.yaml is invalid:\n  rules[1].limits (rules.yaml:8): unknown key; known here: name, ";
    assert!(failure(&output).starts_with(expected), "{output:?}");

    let output = apply(&server, "rules:\n  - scope: [user\n", &[]);
    assert!(failure(&output).starts_with("headgate: rules.yaml:"), "{output:?}");

    let output = server.run(&["rules", "apply", "-f", "missing.yaml"]);
    assert_eq!(
        failure(&output),
        "headgate: cannot read missing.yaml: No such file or directory (os error 2)\n"
    );
    assert_eq!(count(&server), 0);
}

fn terminal() -> Result<(), Skip> {
    let found = Command::new("script").arg("--version").output();
    let skip = |_| Skip { component: "script".to_owned(), reason: "not on PATH".to_owned() };
    found.map(drop).map_err(skip)
}

/// Runs the command on a terminal and types `answer`.
fn on_terminal(server: &Server, arguments: &str, answer: &str) -> (Option<i32>, String) {
    use std::io::Write;
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_headgate"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    script.env("HEADGATE_SERVER", server.url()).current_dir(server.folder());
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = script.spawn().unwrap();
    let mut keyboard = process.stdin.take().unwrap();
    writeln!(keyboard, "{answer}").unwrap();
    let output = process.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn asks_for_confirmation_on_a_terminal_before_deleting_rules() {
    require!(terminal());
    let server = Server::start(&[]);
    printed(&apply(&server, TWO, &[]));
    fs::write(server.folder().join("none.yaml"), "rules: []").unwrap();
    let prune = "rules apply -f none.yaml --prune";

    let (code, seen) = on_terminal(&server, prune, "n");
    assert!(
        seen.contains("Delete 2 rules? [y/N]")
            && seen.contains("headgate: aborted; nothing was changed"),
        "{seen}"
    );
    assert_eq!((code, count(&server)), (Some(1), 2));

    let (code, seen) = on_terminal(&server, prune, "y");
    assert!(seen.contains("0 created, 0 updated, 2 deleted"), "{seen}");
    assert_eq!((code, count(&server)), (Some(0), 0));

    printed(&apply(&server, TWO, &[]));
    let (code, seen) = on_terminal(&server, &format!("{prune} --yes"), "");
    assert!(!seen.contains("Delete"), "{seen}");
    assert_eq!((code, count(&server)), (Some(0), 0));
}
