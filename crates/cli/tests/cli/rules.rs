//! `headgate rules list|get|create|update|delete`

use serde_json::json;

use crate::harness::{Server, failure, json, printed, stderr};

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// Creates a rule and returns its id.
pub(crate) fn create(server: &Server, arguments: &[&str]) -> String {
    let created = server.json(&[&["rules", "create"], arguments].concat());
    created["id"].as_str().unwrap().to_owned()
}

fn every(pattern: &str) -> Vec<&str> {
    vec!["--scope", "user", "--pattern", pattern, "--limit", "100", "--window", "1m"]
}

/// Splits each line into name and value.
fn fields(printed: &str) -> Vec<(&str, &str)> {
    let field = |line: &'_ str| -> (usize, usize) { (line.find("  ").unwrap(), line.len()) };
    let split = |line| {
        let (end, _) = field(line);
        (&line[..end], line[end..].trim_start())
    };
    printed.lines().map(split).collect()
}

#[test]
fn create_and_get_print_the_rule() {
    let server = Server::start(&[]);
    assert_eq!(printed(&server.run(&["rules", "list"])), "no rules\n");

    let options = ["--name", "all_users", "--algorithm", "leaky_bucket", "--burst", "20"];
    let more = ["--fail-mode", "closed", "--lease", "10%/200ms"];
    let arguments = [&["rules", "create"], &every("*")[..], &options, &more].concat();
    let created = server.run(&arguments);
    let shown = fields(printed(&created));
    let id = shown[0].1;
    let expected = [
        ("id", id),
        ("name", "all_users"),
        ("subjects", "user:*"),
        ("limit", "100"),
        ("window", "60s"),
        ("algorithm", "leaky_bucket"),
        ("burst", "20"),
        ("fail mode", "closed"),
        ("lease", "10%/200ms"),
        ("enabled", "yes"),
    ];
    assert_eq!(shown[..10], expected);
    assert_eq!((shown[10].0, shown[11].0, shown.len()), ("created at", "updated at", 12));

    assert_eq!(printed(&server.run(&["rules", "get", id])), printed(&created));
    let got = server.json(&["rules", "get", id]);
    assert_eq!(
        (&got["id"], &got["identifier_pattern"], &got["burst"]),
        (&json!(id), &json!("*"), &json!(20))
    );
}

#[test]
fn a_lease_is_changed_turned_off_and_cleared() {
    let server = Server::start(&[]);
    let id = create(&server, &[&every("*")[..], &["--lease", "10%/200ms"]].concat());
    let update = |options: &[&str]| server.json(&[&["rules", "update", &id], options].concat());
    let lease = |share: u64, hold: u64| json!({"share_percent": share, "hold_ms": hold});
    assert_eq!(update(&["--limit", "50"])["lease"], lease(10, 200), "kept");
    assert_eq!(update(&["--lease", "5%/100ms"])["lease"], lease(5, 100));
    assert_eq!(update(&["--lease", "off"])["lease"], lease(0, 0));
    assert_eq!(printed(&server.run(&["rules", "get", &id])).matches("off").count(), 1);
    assert_eq!(update(&["--clear", "lease"]).get("lease"), None);

    let wrong = server.run(&["rules", "update", &id, "--lease", "60%/200ms"]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let message = "share_percent must be 1 to 50\n";
    assert!(stderr(&wrong).contains(message), "{wrong:?}");
    let long = server.run(&["rules", "update", &id, "--lease", "5%/200ms", "--window", "1s"]);
    let message = "lease.hold_ms must be at most 100, a tenth of the window";
    assert!(failure(&long).contains(message), "{long:?}");
}

#[test]
fn list_prints_aligned_columns_and_filters() {
    let server = Server::start(&[]);
    let long = "a-rather-long-identifier-that-nobody-would-want-to-see-cut-off-in-the-middle";
    let all_users = create(&server, &[&every("*")[..], &["--disabled"]].concat());
    let one = create(
        &server,
        &["--scope", "service", "--pattern", long, "--limit", "5", "--window", "24h"],
    );

    let listed = server.run(&["rules", "list"]);
    let mut lines: Vec<&str> = printed(&listed).lines().collect();
    let heading = lines.remove(0);
    lines.sort_unstable_by_key(|line| line.contains("user:*"));
    let at = |column: &str| heading.find(column).unwrap();
    assert!(lines[0].starts_with(&one) && lines[1].starts_with(&all_users), "{lines:?}");
    assert!(lines[0][at("SUBJECTS")..].starts_with(&format!("service:{long}  ")), "{lines:?}");
    assert!(lines[1][at("SUBJECTS")..].starts_with("user:*  "));
    let limit = at("LIMIT")..at("LIMIT") + "LIMIT".len();
    assert_eq!((&lines[0][limit.clone()], &lines[1][limit]), ("    5", "  100"));
    let window = at("WINDOW")..at("WINDOW") + "WINDOW".len();
    assert_eq!((&lines[0][window.clone()], &lines[1][window]), ("   24h", "   60s"));
    assert!(
        lines[0][at("ENABLED")..].starts_with("yes") && lines[1][at("ENABLED")..].starts_with("no")
    );

    let ids = |arguments: &[&str]| -> Vec<String> {
        let listed = server.json(&[&["rules", "list"], arguments].concat());
        let rules = listed["rules"].as_array().unwrap().iter();
        rules.map(|rule| rule["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&[]).len(), 2);
    assert_eq!(ids(&["--scope", "user"]), [all_users]);
    assert_eq!(ids(&["--enabled-only"]), [one]);
}

#[test]
fn update_changes_only_the_given_fields() {
    let server = Server::start(&[]);
    let id = create(
        &server,
        &[&every("u1")[..], &["--name", "one", "--burst", "7", "--disabled"]].concat(),
    );

    let updated = server.json(&["rules", "update", &id, "--limit", "50"]);
    let kept = json!([updated["limit"], updated["name"], updated["burst"], updated["enabled"]]);
    assert_eq!(kept, json!([50, "one", 7, false]));
    assert_eq!(
        (&updated["identifier_pattern"], &updated["window_seconds"]),
        (&json!("u1"), &json!(60))
    );

    let arguments = ["--enabled", "--window", "1h", "--clear", "burst", "--clear", "name"];
    let updated = server.json(&[&["rules", "update", &id], &arguments[..]].concat());
    assert_eq!(
        json!([updated["enabled"], updated["window_seconds"], updated["limit"]]),
        json!([true, 3600, 50])
    );
    assert_eq!((updated.get("burst"), updated.get("name")), (None, None));

    let table = server.run(&["rules", "update", &id, "--limit", "51"]);
    assert!(printed(&table).contains("\nlimit        51\n"), "{table:?}");

    let shown = server.json(&["rules", "get", &id]);
    let unchanged = server.run(&["rules", "update", &id]);
    let expected = "headgate: nothing to change: pass at least one option (see `headgate rules update --help`)\n";
    assert_eq!(failure(&unchanged), expected);
    assert_eq!(server.json(&["rules", "get", &id]), shown);
}

#[test]
fn deleted_rules_are_not_found() {
    let server = Server::start(&[]);
    let id = create(&server, &every("*"));
    assert_eq!(printed(&server.run(&["rules", "delete", &id])), format!("deleted {id}\n"));
    let other = create(&server, &every("*"));
    assert_eq!(server.json(&["rules", "delete", &other]), json!({ "deleted": other }));

    for arguments in
        [&["get", &id][..], &["delete", &id], &["update", &id, "--limit", "1"], &["get", UNKNOWN]]
    {
        let output = server.run(&[&["rules"], arguments].concat());
        let error = failure(&output);
        let expected = format!(
            "headgate: rule not found: {}\n(SYS_RATELIMIT_RULE_NOT_FOUND, request req_",
            arguments[1]
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn all_invalid_fields_are_reported() {
    let server = Server::start(&[]);
    let options = [
        "--scope",
        "planet",
        "--pattern",
        "*",
        "--limit",
        "0",
        "--window",
        "60s",
        "--fail-mode",
        "maybe",
    ];
    let output = server.run(&[&["rules", "create"], &options[..]].concat());
    let expected = "headgate: validation failed\n  \
        scope must be one of: service, user, endpoint\n  \
        limit must be greater than 0\n  \
        fail_mode must be one of: capped, open, closed, local\n(SYS_RATELIMIT_VALIDATION_ERROR, request req_";
    assert!(failure(&output).starts_with(expected), "{output:?}");

    create(&server, &every("*"));
    let again = server.run(&[&["rules", "create"], &every("*")[..]].concat());
    assert!(failure(&again).contains("(SYS_RATELIMIT_RULE_EXISTS, request req_"), "{again:?}");
}

#[test]
fn usage_errors_are_found_before_a_request_is_sent() {
    let server = Server::start(&[]);
    for (arguments, expected) in [
        (&["create", "--scope", "user"][..], "--pattern <PATTERN>"),
        (
            &["create", "--scope", "user", "--pattern", "*", "--limit", "1", "--window", "1d"],
            "window must be written like 60s",
        ),
        (
            &["create", "--scope", "user", "--pattern", "*", "--limit", "many", "--window", "1h"],
            "'--limit <UNITS|JSON>'",
        ),
        (&["update", UNKNOWN, "--enabled", "--disabled"], "cannot be used with"),
        (&["get"], "<ID>"),
        (&["list", "--output", "xml"], "table, json"),
        (&["apply"], "--file <FILE>"),
    ] {
        let output = server.run(&[&["rules"], arguments].concat());
        assert!(failure(&output).contains(expected), "{output:?}");
    }
    assert_eq!(json(&server.run(&["rules", "list", "--output", "json"])), json!({ "rules": [] }));
}

#[test]
fn rules_over_attributes_are_created_checked_explained_and_exported() {
    let server = Server::start(&[]);
    let when = r#"{"method":["POST","PUT"],"path":"/v1/*"}"#;
    let limit = ["--name", "exports", "--limit", "2", "--window", "24h"];
    let id = create(&server, &[&limit[..], &["--when", when, "--per", "tenant,user"]].concat());
    let shown = server.run(&["rules", "get", &id]);
    let shown = fields(printed(&shown));
    assert!(
        shown.contains(&("when", when)) && shown.contains(&("per", "tenant, user")),
        "{shown:?}"
    );

    let attributes = ["tenant=acme", "user=u1", "path=/v1/x", "method=POST"];
    let attributes: Vec<&str> = attributes.iter().flat_map(|it| ["--attribute", it]).collect();
    let check = |cost: &str| server.run(&[&["check", "--cost", cost], &attributes[..]].concat());
    let first = check("2");
    let decided = fields(printed(&first));
    assert_eq!(decided[..2], [("allowed", "yes"), ("rule", "exports")]);
    assert_eq!(check("1").status.code(), Some(2), "denied");
    let other = server.run(&["check", "--attribute", "tenant=acme"]);
    assert_eq!(fields(printed(&other)), [("allowed", "yes"), ("reason", "no rule matches")]);
    let explained = server.run(&["explain", "--attribute", "tenant=acme"]);
    assert!(printed(&explained).contains("the check has no attribute path"), "{explained:?}");
    let nothing = server.run(&["check"]);
    assert!(
        stderr(&nothing).contains("<SCOPE>"),
        "a subject or attributes are needed: {nothing:?}"
    );

    // An update keeps the conditions; an exported file changes nothing.
    let updated = server.json(&["rules", "update", &id, "--limit", "7", "--priority", "-3"]);
    assert_eq!((&updated["per"], &updated["priority"]), (&json!(["tenant", "user"]), &json!(-3)));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), printed(&server.run(&["rules", "export"]))).unwrap();
    let plan = server.json(&["rules", "apply", "--dry-run", "-f", file.path().to_str().unwrap()]);
    assert_eq!((&plan["unchanged"], &plan["updated"]), (&json!(1), &json!([])), "{plan}");
    let warned =
        create(&server, &["--name", "p", "--limit", "1", "--window", "1m", "--per", "path"]);
    assert!(!warned.is_empty());
}
