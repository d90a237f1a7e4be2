//! `PUT /api/v1/ratelimit/rules` with lists that do not fit, or do not fit any more.

use serde_json::{Value, json};

use crate::harness::{RULES, Reply, Server};

fn rule(pattern: &str, limit: i64, window: i64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": window,
    })
}

fn list(rules: &[Value]) -> String {
    json!({"rules": rules}).to_string()
}

fn details(reply: &Reply) -> Vec<(String, String)> {
    assert_eq!(reply.status, 400, "{}", reply.text);
    let body = reply.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let details = body["error"]["details"].as_array().unwrap();
    details.iter().map(|detail| (text(&detail["field"]), text(&detail["message"]))).collect()
}

#[tokio::test]
async fn every_bad_rule_of_a_list_is_told_at_once() {
    let server = Server::start(&[]).await;
    let rules = [rule("a", 0, 60), rule("b", 1, 60), rule("c*d", 1, -1)];
    let told = details(&server.admin("PUT", RULES, &list(&rules)).await);
    let expected = [
        ("rules[0].limit", "limit must be greater than 0"),
        ("rules[2].identifier_pattern", "identifier_pattern may have a * only at its end"),
        ("rules[2].window_seconds", "window_seconds must be greater than 0"),
    ];
    assert_eq!(told, expected.map(|(field, message)| (field.to_owned(), message.to_owned())));

    let many: Vec<Value> = (0..300).map(|i| rule(&format!("u{i}"), 0, 60)).collect();
    let told = details(&server.admin("PUT", RULES, &list(&many)).await);
    assert_eq!(told.len(), 100);
    assert_eq!(told[98].0, "rules[98].limit");
    let rest = ("rules".to_owned(), "201 more fields of rules do not fit".to_owned());
    assert_eq!(told[99], rest);
}
