//! Metrics of rules and batches.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::harness::{RULES, Server};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

fn rule(pattern: &str, limit: i64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": FOREVER,
    })
}

/// The series of a metric, by their labels.
async fn series(server: &Server, metric: &str) -> BTreeMap<String, u64> {
    let text = server.get("/metrics").await.text;
    let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{metric}{{")));
    let read = |line: &str| {
        let (labels, value) = line.rsplit_once(' ').unwrap();
        (labels.to_owned(), value.parse().unwrap())
    };
    lines.map(read).collect()
}

#[tokio::test]
async fn rules_keep_their_series_when_others_are_added() {
    const METRIC: &str = "headgate_rule_decisions_total";
    let server = Server::start(&[]).await;
    let rules: Vec<Value> = (0..1010).map(|i| rule(&format!("u{i}"), 5)).collect();
    let list = json!({"rules": rules}).to_string();
    let reply = server.admin("PUT", RULES, &list).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    for i in 0..1010 {
        server.check_user(&format!("u{i}")).await;
    }
    let mut before = series(&server, METRIC).await;
    // A thousand rules, the rest and the default, by two outcomes each.
    assert_eq!(before.len(), 2 * 1002);
    let others = r#"outcome="allowed",rule="other",service="headgate"}"#;
    assert_eq!(before[others], 10);
    for new in ["v0", "v1", "v2"] {
        server.create_rule(&rule(new, 5)).await;
        server.check_user(new).await;
        let after = series(&server, METRIC).await;
        for (labels, count) in &before {
            assert!(
                after.get(labels) >= Some(count),
                "{labels} was {count}: {:?}",
                after.get(labels)
            );
        }
        before = after;
    }
    assert_eq!(before[others], 13);
}

#[tokio::test]
async fn a_denied_batch_counts_only_the_denying_rules() {
    const METRIC: &str = "headgate_decisions_total";
    let server = Server::start(&[]).await;
    server.create_rule(&rule("*", 1)).await;
    let ask = async |names: &[&str]| {
        let checks: Vec<Value> =
            names.iter().map(|name| json!({"scope": "user", "identifier": name})).collect();
        let body = json!({"checks": checks}).to_string();
        server.post("/api/v1/ratelimit/check/batch", &body).await.json()["allowed"].clone()
    };
    let counted = async || {
        let series = series(&server, METRIC).await;
        let of = |outcome: &str| series[&format!(r#"outcome="{outcome}",service="headgate"}}"#)];
        (of("allowed"), of("denied"))
    };
    assert_eq!(ask(&["u1", "u2"]).await, true);
    assert_eq!(counted().await, (2, 0));
    // u3 has units left, but nothing is taken.
    assert_eq!(ask(&["u1", "u2", "u3"]).await, false);
    assert_eq!(counted().await, (2, 2));
    assert_eq!(ask(&["u3"]).await, true);
    assert_eq!(counted().await, (3, 2));
}
