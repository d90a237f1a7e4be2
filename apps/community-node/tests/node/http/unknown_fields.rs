//! Misspelt parameters and fields.

use hyper::Request;
use serde_json::json;

use super::harness::{PASSWORD, Reply, Server};

const HERE: &str = "198.51.100.1";

/// Asserts that the reply names the unknown field and one that is known.
#[track_caller]
fn is_refused(reply: &Reply, code: &str, unknown: &str, known: &str) {
    reply.is_refused(400, code);
    let message = reply.json()["message"].as_str().unwrap().to_owned();
    let field = format!("unknown field \"{unknown}\", expected ");
    assert!(message.contains(&field) && message.contains(&format!("`{known}`")), "{message}");
}

#[tokio::test]
async fn unknown_query_parameters_are_refused_by_name() {
    let server = Server::start().await;
    let admin = async |path| server.admin(Request::get(path), "").await;
    admin("/v1/admin/audit-logs?action=admin.login").await.is(200);
    let reply = admin("/v1/admin/audit-logs?actoin=admin.login").await;
    is_refused(&reply, "INVALID_QUERY", "actoin", "action");
    let reply = server.admin(Request::delete("/v1/admin/denylist?subjet=192.0.2.1"), "").await;
    is_refused(&reply, "INVALID_QUERY", "subjet", "subject");
    let ada = server.client(1, HERE).await;
    is_refused(&ada.get("/v1/search?q=a&limt=1").await, "INVALID_QUERY", "limt", "limit");
    is_refused(&ada.get("/v1/trending?limt=1").await, "INVALID_QUERY", "limt", "limit");
    let kind = ada.get("/v1/trending?limit=many").await;
    kind.is_refused(400, "INVALID_QUERY");
    assert!(!kind.text.contains("many"), "{}", kind.text);
    let long = ada.get(&format!("/v1/trending?{}=1", "x".repeat(65))).await;
    long.is_refused(400, "INVALID_QUERY");
    assert!(!long.text.contains("xxx"), "a long name is not repeated: {}", long.text);
}

#[tokio::test]
async fn unknown_fields_of_a_body_are_refused_by_name() {
    let server = Server::start().await;
    let cases = [
        ("/v1/admin/login", json!({"password": PASSWORD, "user": "admin"}), "user", "password"),
        ("/v1/auth/challenge", json!({"pubkey": "ab", "kind": 1}), "kind", "pubkey"),
        (
            "/v1/auth/verify",
            json!({"auth_event_json": {}, "pubkey": "ab"}),
            "pubkey",
            "auth_event_json",
        ),
    ];
    for (path, body, unknown, known) in cases {
        is_refused(&server.post(HERE, path, &body).await, "INVALID_JSON", unknown, known);
    }
    let ada = server.client(1, HERE).await;
    let report = json!({"pubkey": "ab".repeat(32), "reason": "spam", "event": "cd"});
    is_refused(&ada.post("/v1/reports", &report).await, "INVALID_JSON", "event", "event_id");
}
