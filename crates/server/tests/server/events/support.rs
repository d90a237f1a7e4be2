//! Quotas that reach their limits.

use serde_json::{Value, json};

use crate::harness::{Reply, Server};

pub(crate) const EVENTS: &str = "/api/v1/events";

/// Creates a daily policy that alerts at 80 percent; returns its id.
pub(crate) async fn policy(server: &Server, subject: &str, limit: u64) -> String {
    let body = json!({
        "name": subject, "subject_type": "tenant", "subject_id": subject, "limit": limit,
        "period": "daily", "enabled": true, "alert_threshold_percent": 80,
    });
    let reply = server.admin("POST", "/api/v1/quotas", &body.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn increment(server: &Server, id: &str, amount: u64) -> Reply {
    let path = format!("/api/v1/quotas/{id}/usage/increment");
    server.admin("POST", &path, &json!({"amount": amount}).to_string()).await
}

/// Creates a policy and uses all of it, which makes two events; returns its id.
pub(crate) async fn exhausted(server: &Server, subject: &str) -> String {
    let id = policy(server, subject, 10).await;
    for amount in [8, 2] {
        let reply = increment(server, &id, amount).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }
    id
}

/// Events that the server lists.
pub(crate) async fn list(server: &Server, query: &str) -> Value {
    let reply = server.admin("GET", &format!("{EVENTS}?{query}"), "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// The types of events, in their order.
pub(crate) fn types(listed: &Value) -> Vec<&str> {
    let events = listed["events"].as_array().unwrap();
    events.iter().map(|event| event["event_type"].as_str().unwrap()).collect()
}
