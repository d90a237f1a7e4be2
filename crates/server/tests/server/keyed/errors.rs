//! Errors.

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use super::{ALGORITHMS, backend::until_up};
use crate::harness::{Reply, Server};

/// Checks the format of an error; returns its code.
fn code(reply: &Reply) -> String {
    let body = reply.json();
    let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error", "message", "requestedAlgorithm", "supportedAlgorithms"]);
    assert!(!body["message"].as_str().unwrap().is_empty());
    assert_eq!(reply.header("cache-control"), "no-store");
    assert_eq!(reply.header("content-type"), "application/json");
    assert!(!reply.header("x-request-id").is_empty());
    body["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_unknown_algorithm_lists_the_known_ones() {
    let server = Server::start(&[]).await;
    for name in ["LEAKY_FAUCET", "CALENDAR", "", "token-bucket", "TOKEN_BUCKET%20"] {
        for path in ["check", "remaining"] {
            let reply = server.ask("GET", &format!("{path}?algorithm={name}&key=u1")).await;
            assert_eq!(reply.status, 400, "{name}");
            assert_eq!(code(&reply), "INVALID_PARAMETER");
            let body = reply.json();
            assert_eq!(body["requestedAlgorithm"], name.replace("%20", " "));
            assert_eq!(body["supportedAlgorithms"], json!(ALGORITHMS));
        }
    }
    let reply = server.reset_key("algorithm=NONE&key=u1").await;
    assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (400, "INVALID_PARAMETER"));
}

#[tokio::test]
async fn invalid_permits_and_keys_are_rejected() {
    let server = Server::start(&[]).await;
    let long = format!("key={}", "x".repeat(513));
    let cases = [
        ("key=u1&permits=x", "INVALID_PARAMETER"),
        ("key=u1&permits=", "INVALID_PARAMETER"),
        ("key=u1&permits=1.5", "INVALID_PARAMETER"),
        ("key=u1&permits=1&permits=1", "INVALID_PARAMETER"),
        ("key=u1&key=u2", "INVALID_PARAMETER"),
        ("key=u1&permits=0", "INVALID_REQUEST"),
        ("key=u1&permits=-5", "INVALID_REQUEST"),
        ("key=u1&permits=101", "INVALID_REQUEST"),
        ("key=u1&permits=99999999999999999999", "INVALID_REQUEST"),
        ("key=", "INVALID_REQUEST"),
        ("key=%20%20", "INVALID_REQUEST"),
        ("key=a%0Ab", "INVALID_REQUEST"),
        ("key=a%00b", "INVALID_REQUEST"),
        ("key=%7Btag%7Da", "INVALID_REQUEST"),
        ("key=%FF", "INVALID_REQUEST"),
        (long.as_str(), "INVALID_REQUEST"),
    ];
    for (query, expected) in cases {
        for method in ["GET", "POST"] {
            let reply = server.ask(method, &format!("check?{query}")).await;
            assert_eq!(reply.status, 400, "{query}: {}", reply.text);
            assert_eq!(code(&reply), expected, "{query}");
            assert_eq!(reply.json()["requestedAlgorithm"], Value::Null);
            assert_eq!(reply.json()["supportedAlgorithms"], Value::Null);
        }
    }
    let refusal = server.check_key("key=u1&permits=101").await.json();
    assert_eq!(refusal["message"], "permits must be from 1 to 100 here, got 101");
    // Nothing was taken.
    assert_eq!(server.check_key("key=u1").await.json()["remaining"], 99);
}

#[tokio::test]
async fn a_reset_needs_a_key_and_a_role() {
    let server = Server::start(&[]).await;
    let reply = server.ask("DELETE", "reset?key=u1").await;
    assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (401, "SYS_AUTH_MISSING_TOKEN"));
    assert_eq!(reply.header("www-authenticate"), "Bearer");
    let path = "/api/v1/rate-limit/reset?key=u1";
    let reply = server.with_token(Some("not-a-token-of-ours"), "DELETE", path, "").await;
    assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (401, "SYS_AUTH_TOKEN_INVALID"));
    let reply = server.reset_key("").await;
    assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (400, "INVALID_PARAMETER"));

    let roles = [("sys_auditor", 403), ("sys_operator", 200), ("sys_admin", 200)];
    for (role, status) in roles {
        let token = "a-token-0123456789abcdef0123456789";
        let tokens = format!("[{{name: somebody, role: {role}, token: {token}}}]");
        let server = Server::start(&[("auth.tokens", tokens.as_str())]).await;
        let reply = server.with_token(Some(token), "DELETE", path, "").await;
        assert_eq!(reply.status, status, "{role}: {}", reply.text);
        if status == 403 {
            assert_eq!(code(&reply), "SYS_AUTH_PERMISSION_DENIED");
        }
    }
}

#[tokio::test]
async fn other_methods_are_rejected_in_the_same_format() {
    let server = Server::start(&[]).await;
    for (method, path, allowed) in [
        ("DELETE", "check", "GET,HEAD,POST"),
        ("POST", "remaining", "GET,HEAD"),
        ("GET", "reset?key=u1", "DELETE"),
    ] {
        let reply = server.ask(method, path).await;
        assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (405, "METHOD_NOT_ALLOWED"));
        assert_eq!(reply.header("allow"), allowed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_request_gets_a_timeout_error() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "60000"),
        ("server.request_timeout_seconds", "1"),
    ])
    .await;
    until_up(&server).await;
    redis.pause();
    let reply = server.check_key("key=u1").await;
    redis.resume();
    assert_eq!((reply.status.as_u16(), code(&reply).as_str()), (408, "TIMEOUT"));
}
