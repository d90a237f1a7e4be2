//! `PUT /api/v1/ratelimit/rules` with invalid and outdated lists.

use std::sync::Arc;

use headgate_testkit::{Postgres, require};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{RULES, Server};

fn rule(pattern: &str, limit: i64, window: i64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": window,
    })
}

fn list(rules: &[Value]) -> String {
    json!({"rules": rules}).to_string()
}

#[tokio::test]
async fn all_invalid_rules_of_a_list_are_reported_at_once() {
    let server = Server::start(&[]).await;
    let rules = [rule("a", 0, 60), rule("b", 1, 60), rule("c*d", 1, -1)];
    let reported = server.admin("PUT", RULES, &list(&rules)).await.details();
    let expected = [
        ("rules[0].limit", "limit must be greater than 0"),
        ("rules[2].identifier_pattern", "identifier_pattern may have a * only at its end"),
        ("rules[2].window_seconds", "window_seconds must be greater than 0"),
    ];
    assert_eq!(reported, expected.map(|(field, message)| (field.to_owned(), message.to_owned())));

    let many: Vec<Value> = (0..300).map(|i| rule(&format!("u{i}"), 0, 60)).collect();
    let reported = server.admin("PUT", RULES, &list(&many)).await.details();
    assert_eq!(reported.len(), 100);
    assert_eq!(reported[98].0, "rules[98].limit");
    let rest = ("rules".to_owned(), "201 more fields of rules are invalid".to_owned());
    assert_eq!(reported[99], rest);
}

#[tokio::test]
async fn a_long_list_of_invalid_rules_is_not_validated_to_its_end() {
    let server = Server::start(&[]).await;
    let empty = vec!["{}"; 50_000].join(",");
    let reported = server.admin("PUT", RULES, &format!(r#"{{"rules":[{empty}]}}"#)).await.details();
    assert_eq!(reported.len(), 100);
    let (field, message) = &reported[99];
    let more: usize = message.split(' ').next().unwrap().parse().unwrap();
    assert!(field == "rules" && more < 1000, "{message}");
}

#[tokio::test]
async fn problems_with_the_form_of_rules_are_reported_with_their_places() {
    let server = Server::start(&[]).await;
    let put = async |rules: &str| {
        let body = format!(r#"{{"rules":{rules}}}"#);
        server.admin("PUT", RULES, &body).await.details()
    };
    let long = "x".repeat(64 * 1024);
    let rules =
        format!(r#"[[1,"user"],{{"limits":1}},{{"name":"{long}"}},{{"limit":1,"limit":2}}]"#);
    let reported = put(&rules).await;
    let fields: Vec<&str> = reported.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["rules[0]", "rules[1].limits", "rules[2]", "rules[3]"]);
    assert_eq!(reported[0].1, "a rule must be an object");
    assert_eq!(reported[2].1, "a rule must be at most 65536 bytes");
    assert!(reported[3].1.starts_with("does not fit: duplicate field `limit`"), "{reported:?}");

    // What follows many problems is not read.
    let many = vec![r#"{"limits":1}"#; 1000].join(",");
    assert_eq!(put(&format!("[{many}]")).await.len(), 20);

    let refused = server.admin("PUT", RULES, r#"{"rules":{}}"#).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("rules must be a list"), "{}", refused.text);
}

#[tokio::test]
async fn nested_objects_of_rules_have_no_duplicate_keys() {
    let server = Server::start(&[]).await;
    let start = r#""name":"n","window_seconds":60"#;
    for rest in [
        r#""limit":{"by":"plan","free":1,"free":9,"default":1}"#,
        r#""limit":1,"when":{"path":"/a","path":"/b"}"#,
        r#""limit":1,"when":{"size":{"min":1,"min":2}}"#,
        r#""limit":1,"per":["a"],"lease":{"share_percent":1,"share_percent":50,"hold_ms":100}"#,
    ] {
        let rule = format!("{{{start},{rest}}}");
        for (method, body) in [("POST", rule.clone()), ("PUT", format!(r#"{{"rules":[{rule}]}}"#))]
        {
            let refused = server.admin(method, RULES, &body).await;
            assert_eq!(refused.status, 400, "{body}: {}", refused.text);
            assert!(refused.text.contains("duplicate"), "{body}: {}", refused.text);
        }
    }
}

async fn a_plan_is_applied_exactly_or_not_at_all(server: &Server) {
    server.create_rule(&rule("old", 1, 60)).await;
    let put = async |dry_run: bool, revision: Value| {
        let wanted = json!({
            "rules": [rule("new", 1, 60)], "prune": true, "dry_run": dry_run, "revision": revision,
        });
        server.admin("PUT", RULES, &wanted.to_string()).await
    };
    let patterns = async || {
        let body = server.admin("GET", RULES, "").await.json();
        let rules = body["rules"].as_array().unwrap().iter();
        let mut names: Vec<Value> = rules.map(|rule| rule["identifier_pattern"].clone()).collect();
        names.sort_by_key(Value::to_string);
        names
    };
    let looked = put(true, Value::Null).await.json();
    assert_eq!(looked["deleted"].as_array().unwrap().len(), 1, "{looked}");
    let revision = looked["revision"].clone();
    server.create_rule(&rule("rival", 1, 60)).await;

    for dry_run in [true, false] {
        let refused = put(dry_run, revision.clone()).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let error = refused.json()["error"].clone();
        assert_eq!(error["code"], "SYS_RATELIMIT_RULES_CHANGED");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with("repeat the dry run and retry"), "{message}");
    }
    assert_eq!(patterns().await, ["old", "rival"]);

    let looked = put(true, Value::Null).await.json();
    let done = put(false, looked["revision"].clone()).await.json();
    assert_eq!((&done["applied"], &done["revision"]), (&json!(true), &looked["revision"]));
    assert_eq!(done["deleted"].as_array().unwrap().len(), 2);
    assert_eq!(patterns().await, ["new"]);
    // Nothing changes: nothing is written, and the revision stays the same.
    let again = put(false, Value::Null).await.json();
    assert_eq!(put(false, again["revision"].clone()).await.status, 200);

    for wrong in [json!("7"), json!(1.5), json!([])] {
        let reported = put(true, wrong).await.details();
        let expected = "revision must be that of a plan, a whole number";
        assert_eq!(reported, [("revision".to_owned(), expected.to_owned())]);
    }
}

#[tokio::test]
async fn a_plan_is_applied_exactly_or_not_at_all_on_sqlite() {
    a_plan_is_applied_exactly_or_not_at_all(&Server::start(&[]).await).await;
}

#[tokio::test]
async fn a_plan_is_applied_exactly_or_not_at_all_on_postgres() {
    let postgres = require!(Postgres::shared());
    let server = Server::start(&[("database.url", postgres.url())]).await;
    a_plan_is_applied_exactly_or_not_at_all(&server).await;
}

/// Eight concurrent requests each replace all rules: the result is one of the lists, not a mixture.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_lists_are_not_mixed() {
    let postgres = require!(Postgres::shared());
    let server = Arc::new(Server::start(&[("database.url", postgres.url())]).await);
    let mut writers = JoinSet::new();
    for writer in 0..8 {
        let server = Arc::clone(&server);
        let rules = [1, 2, 3].map(|i| rule(&format!("w{writer}-{i}"), 1, 60));
        let list = json!({"rules": rules, "prune": true}).to_string();
        writers.spawn(async move { server.admin("PUT", RULES, &list).await.status.as_u16() });
    }
    let statuses = writers.join_all().await;
    assert!(statuses.contains(&200), "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    let body = server.admin("GET", RULES, "").await.json();
    let rules = body["rules"].as_array().unwrap();
    let owner = |rule: &Value| rule["identifier_pattern"].as_str().unwrap()[..2].to_owned();
    assert_eq!(rules.len(), 3, "{body}");
    assert!(rules.iter().all(|rule| owner(rule) == owner(&rules[0])), "{body}");
}
