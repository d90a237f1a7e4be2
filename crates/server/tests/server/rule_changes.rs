//! Usage after a change of a rule.

use serde_json::{Value, json};

use crate::harness::{RULES, Server};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

fn rule(limit: i64, window: i64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": "u1", "limit": limit, "window_seconds": window,
        "algorithm": "fixed_window",
    })
}

async fn change(server: &Server, id: &str, rule: &Value) {
    let reply = server.admin("PUT", &format!("{RULES}/{id}"), &rule.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Takes one unit.
async fn left(server: &Server) -> Value {
    server.check_user("u1").await.json()["remaining"].clone()
}

#[tokio::test]
async fn a_changed_burst_keeps_usage() {
    let server = Server::start(&[]).await;
    let of = |burst: i64| {
        let mut rule = rule(10, FOREVER);
        rule["algorithm"] = json!("token_bucket");
        rule["burst"] = json!(burst);
        rule
    };
    let id = server.create_rule(&of(5)).await;
    assert_eq!((left(&server).await, left(&server).await), (json!(4), json!(3)));
    change(&server, &id, &of(20)).await;
    assert_eq!(left(&server).await, 17);
    change(&server, &id, &of(4)).await;
    assert_eq!(left(&server).await, 0);
}

#[tokio::test]
async fn a_changed_window_or_algorithm_starts_new_counters_unless_the_old_rule_remains() {
    let server = Server::start(&[]).await;
    let id = server.create_rule(&rule(3, FOREVER)).await;
    assert_eq!((left(&server).await, left(&server).await), (json!(2), json!(1)));
    change(&server, &id, &rule(3, FOREVER / 2)).await;
    assert_eq!(left(&server).await, 2);
    let mut log = rule(3, FOREVER / 2);
    log["algorithm"] = json!("sliding_window");
    change(&server, &id, &log).await;
    assert_eq!(left(&server).await, 2);

    // With both rules, usage is kept.
    log["window_seconds"] = json!(FOREVER / 2 + 1);
    server.create_rule(&log).await;
    assert_eq!(left(&server).await, 1);
}
