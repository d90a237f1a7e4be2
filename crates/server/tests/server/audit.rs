//! `GET /api/v1/ratelimit/audit`: the log of changes.

use hyper::Request;
use serde_json::json;

use crate::{
    backend::{Backend, on_both_backends},
    harness::RULES,
};

const AUDIT: &str = "/api/v1/ratelimit/audit";

on_both_backends!(every_change_is_in_the_audit_log, entries_name_the_changed_object,);

async fn every_change_is_in_the_audit_log(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let token = server.admin_token.clone().unwrap();
    let named = |method: &str, path: &str, id: &str| {
        Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .header("x-request-id", id)
    };
    let rule = |limit: u64| {
        json!({"scope": "user", "identifier_pattern": "u1", "limit": limit, "window_seconds": 60})
            .to_string()
    };
    let created = server.send(named("POST", RULES, "req-1"), &rule(5)).await;
    let id = created.json()["id"].as_str().unwrap().to_owned();
    let path = format!("{RULES}/{id}");
    server.send(named("PUT", &path, "req-2"), &rule(6)).await;
    server.send(named("DELETE", &path, "req-3"), "").await;
    let reset = json!({"scope": "user", "identifier": "u1", "reason": "by mistake"}).to_string();
    server.send(named("POST", "/api/v1/ratelimit/reset", "req-4"), &reset).await;

    let body = server.admin("GET", AUDIT, "").await.json();
    let entries = body["entries"].as_array().unwrap();
    let column = |key: &str| entries.iter().map(|entry| entry[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("action"), ["counter.reset", "rule.delete", "rule.update", "rule.create"]);
    assert_eq!(column("request_id"), ["req-4", "req-3", "req-2", "req-1"]);
    assert_eq!(column("actor"), ["admin"; 4]);
    assert_eq!(column("target"), [json!("user:u1"), json!(id), json!(id), json!(id)]);
    assert_eq!(
        column("target_name"),
        [json!(null), json!("user:u1"), json!("user:u1"), json!("user:u1")]
    );
    assert_eq!(entries[0]["reason"], "by mistake");
    assert!(entries[0]["after"].is_null(), "it was done: {body}");
    assert_eq!(
        (&entries[2]["before"]["limit"], &entries[2]["after"]["limit"]),
        (&json!(5), &json!(6))
    );
    assert!(entries[3]["before"].is_null() && entries[1]["after"].is_null(), "{body}");

    let count = async |query: &str| {
        let body = server.admin("GET", &format!("{AUDIT}?{query}"), "").await.json();
        body["pagination"]["total_count"].as_u64()
    };
    assert_eq!(count("action=rule.update").await, Some(1));
    assert_eq!(count("actor=nobody").await, Some(0));
    assert_eq!(count(&format!("target={id}&page_size=1")).await, Some(3));
    assert_eq!(count("since=2100-01-01T00:00:00Z").await, Some(0));
    assert_eq!(count("until=2100-01-01T00:00:00Z").await, Some(4));
    assert_eq!(server.admin("GET", &format!("{AUDIT}?since=yesterday"), "").await.status, 400);
}

/// The name is the one at the time of the change.
async fn entries_name_the_changed_object(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = |name: &str| {
        json!({"name": name, "scope": "user", "identifier_pattern": "u1", "limit": 5, "window_seconds": 60})
            .to_string()
    };
    let id = server.admin("POST", RULES, &rule("free plan")).await.json()["id"].clone();
    let path = format!("{RULES}/{}", id.as_str().unwrap());
    assert_eq!(server.admin("PUT", &path, &rule("paid plan")).await.status, 200);
    let quota = json!({
        "name": "requests", "subject_type": "tenant", "subject_id": "t1", "limit": 10, "period": "daily",
    });
    let quota = server.admin("POST", "/api/v1/quotas", &quota.to_string()).await.json();
    let path = format!("/api/v1/quotas/{}", quota["id"].as_str().unwrap());
    let why = json!({"reason": "by mistake"}).to_string();
    assert_eq!(server.admin("POST", &format!("{path}/usage/reset"), &why).await.status, 200);
    assert_eq!(server.admin("DELETE", &path, "").await.status, 204);

    let body = server.admin("GET", AUDIT, "").await.json();
    let entries = body["entries"].as_array().unwrap();
    let names: Vec<_> = entries.iter().rev().map(|entry| entry["target_name"].clone()).collect();
    assert_eq!(names, ["free plan", "paid plan", "requests", "requests", "requests"]);
    let targets: Vec<_> = entries.iter().rev().map(|entry| entry["target"].clone()).collect();
    assert_eq!(targets, [&id, &id, &quota["id"], &quota["id"], &quota["id"]].map(Clone::clone));
}
