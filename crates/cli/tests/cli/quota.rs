//! `headgate quota`

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::harness::{Server, failure, printed, stderr, stdout};

const POLICY: [&str; 10] = [
    "--name",
    "Standard plan",
    "--subject-type",
    "tenant",
    "--subject-id",
    "t1",
    "--limit",
    "10",
    "--period",
    "monthly",
];

/// Creates a policy and returns its id.
fn create(server: &Server, more: &[&str]) -> String {
    let created = server.json(&[&["quota", "create"], &POLICY[..], more].concat());
    created["id"].as_str().unwrap().to_owned()
}

/// Splits each line into name and value.
fn fields(printed: &str) -> Vec<(&str, &str)> {
    let split = |line: &'_ str| -> usize { line.find("  ").unwrap() };
    printed.lines().map(|line| (&line[..split(line)], line[split(line)..].trim_start())).collect()
}

#[test]
fn policies_can_be_created_read_updated_and_deleted() {
    let server = Server::start(&[]);
    assert_eq!(printed(&server.run(&["quota", "list"])), "no quotas\n");
    let id = create(&server, &["--alert-at", "80", "--time-zone", "Asia/Tokyo"]);
    let got = server.run(&["quota", "get", &id]);
    let shown = fields(printed(&got));
    let expected = [
        ("id", id.as_str()),
        ("name", "Standard plan"),
        ("subject", "tenant:t1"),
        ("limit", "10"),
        ("period", "monthly"),
        ("time zone", "Asia/Tokyo"),
        ("enabled", "yes"),
        ("alert at", "80 %"),
    ];
    assert_eq!(shown[..8], expected);
    let listed = server.run(&["quota", "list", "--subject-type", "tenant", "--enabled-only"]);
    let rows: Vec<&str> = printed(&listed).lines().collect();
    assert!(rows[0].starts_with("ID ") && rows[1].starts_with(&id) && rows.len() == 2, "{rows:?}");
    assert_eq!(server.json(&["quota", "list"])["quotas"][0]["id"], json!(id));

    let options = ["--limit", "20", "--disabled", "--clear", "alert-at"];
    let changed = server.json(&[&["quota", "update", &id], &options[..]].concat());
    assert_eq!((&changed["limit"], &changed["enabled"]), (&json!(20), &json!(false)));
    assert_eq!(
        (changed.get("alert_threshold_percent"), &changed["time_zone"]),
        (None, &json!("Asia/Tokyo"))
    );

    let unchanged = server.run(&["quota", "update", &id]);
    assert!(failure(&unchanged).starts_with("headgate: nothing to change"), "{unchanged:?}");

    assert_eq!(printed(&server.run(&["quota", "delete", &id])), format!("deleted {id}\n"));
    let gone = server.run(&["quota", "get", &id]);
    assert!(failure(&gone).starts_with(&format!("headgate: quota policy not found: {id}")));
}

#[test]
fn increments_are_charged_until_the_quota_is_exceeded() {
    let server = Server::start(&[]);
    let id = create(&server, &[]);
    let used = server.run(&["quota", "increment", &id, "--amount", "8", "--request-id", "a"]);
    let expected =
        [("allowed", "yes"), ("quota", id.as_str()), ("used", "8 (80 %)"), ("remaining", "2")];
    assert_eq!(fields(printed(&used)), expected);
    let again = server.run(&["quota", "increment", &id, "--amount", "8", "--request-id", "a"]);
    assert_eq!(fields(printed(&again)), expected, "charged once");

    let usage = server.run(&["quota", "usage", &id]);
    let usage = fields(printed(&usage));
    assert_eq!(
        usage[1..4],
        [("subject", "tenant:t1"), ("used", "8 of 10 (80 %)"), ("remaining", "2")]
    );
    assert_eq!(server.run(&["quota", "check", &id, "--amount", "2"]).status.code(), Some(0));
    let check = server.run(&["quota", "check", &id, "--amount", "3"]);
    assert_eq!((check.status.code(), fields(stdout(&check))[0]), (Some(2), ("allowed", "no")));

    let refused = server.run(&["quota", "increment", &id, "--amount", "3"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let denial = fields(stdout(&refused));
    let reason = ("reason", "quota exceeded for t1: 8/10 (monthly)");
    assert_eq!(denial[..3], [("allowed", "no"), ("requested", "3"), reason]);
    assert_eq!((denial[3].0, denial.len()), ("reset at", 4));
    let refused = server.run(&["quota", "increment", &id, "--amount", "3", "--output", "json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stdout(&refused).contains(r#""code":"SYS_QUOTA_EXCEEDED""#), "{refused:?}");

    let history = server.run(&["quota", "history", &id]);
    let row = printed(&history).lines().nth(1).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..], ["8", "10", "80", "no"]);
    let reset = server.run(&["quota", "reset", &id, "--reason", "a new plan"]);
    let reset = fields(printed(&reset));
    assert_eq!((reset[1], reset[3]), (("used", "0"), ("reset by", "admin")));
    let invalid = server.run(&["quota", "increment", &id, "--amount", "0"]);
    assert!(failure(&invalid).contains("amount must be greater than 0"), "{invalid:?}");
}

#[test]
fn units_are_reserved_used_settled_cancelled_and_refunded() {
    let server = Server::start(&[]);
    let id = create(&server, &[]);
    // So long that it does not end before it is settled.
    let reserve = ["quota", "reserve", &id, "--amount", "6", "--ttl", "3600", "--request-id", "a"];
    let made = server.json(&reserve);
    let one = made["id"].as_str().unwrap();
    assert_eq!(server.json(&reserve)["id"], one, "the same reservation");
    let usage = server.run(&["quota", "usage", &id]);
    let expected = [("used", "0 of 10 (0 %)"), ("reserved", "6"), ("remaining", "4")];
    assert_eq!(fields(printed(&usage))[2..5], expected);
    let refused = server.run(&["quota", "reserve", &id, "--amount", "5"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(fields(stdout(&refused))[..2], [("allowed", "no"), ("requested", "5")]);

    let used = server.run(&["quota", "use", &id, one, "--amount", "2"]);
    let used = fields(printed(&used));
    assert_eq!(used[2..6], [("charged", "2"), ("owed", "0"), ("held", "4"), ("stop", "no")]);
    let settled = server.run(&["quota", "settle", &id, one, "--amount", "5"]);
    let settled = fields(printed(&settled));
    let expected = [("status", "settled"), ("settled", "5"), ("returned", "1"), ("owed", "0")];
    assert_eq!(settled[2..6], expected);
    let another = server.run(&["quota", "settle", &id, one, "--amount", "4"]);
    assert!(failure(&another).contains("was settled for 5 without overdraft"), "{another:?}");
    let shown = server.run(&["quota", "reservation", &id, one]);
    assert_eq!(fields(printed(&shown))[..2], [("reservation", one), ("quota", id.as_str())]);

    let other = server.json(&["quota", "reserve", &id, "--amount", "5", "--ttl", "3600"]);
    let other = other["id"].as_str().unwrap();
    let stopped = server.run(&["quota", "use", &id, other, "--amount", "5"]);
    assert_eq!(stopped.status.code(), Some(2), "nothing is left: {stopped:?}");
    assert_eq!(server.json(&["quota", "cancel", &id, other])["settled"], 5);
    let unknown = server.run(&["quota", "cancel", &id, "qres_2026-02_0"]);
    assert!(failure(&unknown).contains("quota reservation not found"), "{unknown:?}");

    printed(&server.run(&["quota", "reset", &id, "--reason", "a new plan"]));
    printed(&server.run(&["quota", "increment", &id, "--amount", "3", "--request-id", "b"]));
    let refunded = server.run(&["quota", "refund", &id, "--request-id", "b"]);
    let expected = [("refunded", "3"), ("used", "0 (0 %)"), ("remaining", "10")];
    assert_eq!(fields(printed(&refunded))[1..], expected);
}

#[test]
fn events_are_printed_once_and_can_be_followed() {
    let server = Server::start(&[]);
    let nothing = server.run(&["quota", "events"]);
    assert_eq!((printed(&nothing), stderr(&nothing)), ("", "continue with: --after 0\n"));
    let id = create(&server, &["--alert-at", "50"]);
    printed(&server.run(&["quota", "increment", &id, "--amount", "5"]));

    let mut follow = server.command(&["quota", "events", "--follow", "--output", "json"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next()["event_type"], "QUOTA_THRESHOLD_REACHED");
    printed(&server.run(&["quota", "increment", &id, "--amount", "5"]));
    let exceeded = next();
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(
        (&exceeded["event_type"], &exceeded["used"]),
        (&json!("QUOTA_EXCEEDED"), &json!(10))
    );

    let shown = server.run(&["quota", "events", "--quota", &id]);
    let lines: Vec<&str> = printed(&shown).lines().collect();
    let expected = [
        format!("  QUOTA_THRESHOLD_REACHED  {id}  tenant:t1  5/10 monthly"),
        format!("  QUOTA_EXCEEDED           {id}  tenant:t1  10/10 monthly"),
    ];
    assert!(lines[0].ends_with(&expected[0]) && lines[1].ends_with(&expected[1]), "{lines:?}");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let cursor = stderr(&shown).trim().strip_prefix("continue with: --after ").unwrap();
    let rest = server.run(&["quota", "events", "--after", cursor, "--output", "json"]);
    assert_eq!(printed(&rest), "");
    assert!(failure(&server.run(&["quota", "events", "--after", "x"])).contains("after must be"));
}
