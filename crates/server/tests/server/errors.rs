//! Errors of the REST API, all in the same envelope.

use hyper::Request;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, Reply, Server},
};

/// Checks the envelope; returns the error without its request id.
fn refused(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{reply:?}");
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.header("content-length"), reply.text.len().to_string());
    let mut body = reply.json();
    let error = body["error"].as_object_mut().expect("an error");
    let id = error.remove("request_id").expect("a request id");
    assert_eq!(id, reply.header("x-request-id"));
    // Other tests check the machine-readable part of details.
    let details = body["error"].get_mut("details").and_then(Value::as_array_mut);
    for detail in details.into_iter().flatten() {
        assert!(detail.as_object_mut().unwrap().remove("reason").is_some(), "{}", reply.text);
    }
    body["error"].take()
}

on_both_backends!(
    all_invalid_fields_are_reported_at_once,
    invalid_identifiers_are_rejected,
    a_slow_request_times_out,
);

async fn all_invalid_fields_are_reported_at_once(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let scope =
        json!({"field": "scope", "message": "scope must be one of: service, user, endpoint"});
    let cases = [
        (r#"{"scope":"planet","identifier":"u1"}"#, json!([scope])),
        (
            r#"{"scope":"planet","identifier":"","window":"soon"}"#,
            json!([
                scope,
                {"field": "identifier", "message": "identifier must not be empty"},
                {"field": "window", "message": "window must be written like 60s, 1m, 1h or 60 (seconds)"},
            ]),
        ),
        (
            "{}",
            json!([
                {"field": "scope", "message": "scope is required"},
                {"field": "identifier", "message": "identifier is required"},
            ]),
        ),
        (
            r#"{"scope":1,"identifier":[[{}]],"window":true}"#,
            json!([
                {"field": "scope", "message": "scope must be a string, got a number"},
                {"field": "identifier", "message": "identifier must be a string, got a list"},
                {"field": "window", "message": "window must be written like 60s, 1m, 1h or 60 (seconds)"},
            ]),
        ),
        (
            r#"{"scope":null,"identifier":{"a":1},"window":"30s"}"#,
            json!([
                {"field": "scope", "message": "scope is required"},
                {"field": "identifier", "message": "identifier must be a string, got an object"},
            ]),
        ),
        (
            r#"{"scope":"user","identifier":"u1","window":"30s"}"#,
            json!([{"field": "window", "message": "no rule has a window of 30s; windows of this subject: 60s"}]),
        ),
    ];
    for (body, details) in cases {
        let error = refused(&server.post(CHECK, body).await, 400);
        let expected = json!({
            "code": "SYS_RATELIMIT_VALIDATION_ERROR",
            "message": "validation failed",
            "details": details,
        });
        assert_eq!(error, expected, "{body}");
    }
}

async fn invalid_identifiers_are_rejected(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let cases = [
        ("a\nb", "identifier must not contain control characters (found byte 0x0a)"),
        ("a\0b", "identifier must not contain control characters (found byte 0x00)"),
        (
            "a{b",
            "identifier must not contain braces: '{' and '}' choose the node in a Redis Cluster",
        ),
        (&"x".repeat(10_000), "identifier must be at most 512 bytes, got 10000"),
    ];
    for (identifier, message) in cases {
        let error = refused(&server.check_user(identifier).await, 400);
        assert_eq!(error["details"], json!([{"field": "identifier", "message": message}]));
    }
}

#[tokio::test]
async fn bodies_that_are_no_json_objects_are_refused() {
    let server = Server::start(&[]).await;
    let cases = [
        ("", "the body is empty; expected a JSON object"),
        (" \n", "the body is empty; expected a JSON object"),
        (r#"["user","u1"]"#, "the body must be a JSON object"),
        ("scope=user", "the body must be a JSON object"),
        ("\u{1f}\u{8b}compressed", "the body is compressed; send it without a content-encoding"),
        (
            r#"{"scope":"user""#,
            "the body is not valid JSON: EOF while parsing an object at line 1 column 15",
        ),
        (
            r#"{"scope":"user"} x"#,
            "the body is not valid JSON: trailing characters at line 1 column 18",
        ),
        (
            r#"{"scope":"user","scope":"user"}"#,
            "the body does not fit: duplicate field `scope` at line 1 column 23",
        ),
    ];
    for (body, message) in cases {
        let error = refused(&server.post(CHECK, body).await, 400);
        let expected = json!({"code": "SYS_RATELIMIT_VALIDATION_ERROR", "message": message});
        assert_eq!(error, expected, "{body}");
    }
    let long = json!({ "checks": "x".repeat(10_000) }).to_string();
    let error = refused(&server.post(&format!("{CHECK}/batch"), &long).await, 400);
    let message = error["message"].as_str().unwrap();
    assert!(message.len() < 300 && message.contains("at line 1"), "{message}");
    let deep = format!("{{\"scope\":{}", "[".repeat(10_000));
    refused(&server.post(CHECK, &deep).await, 400);
}

#[tokio::test]
async fn a_body_that_is_not_sent_as_json_is_refused() {
    let server = Server::start(&[]).await;
    let body = r#"{"scope":"user","identifier":"u1"}"#;
    for content_type in ["application/x-www-form-urlencoded", "text/plain", ""] {
        let request = Request::post(CHECK).header("content-type", content_type);
        let error = refused(&server.send(request, body).await, 415);
        assert_eq!(error["code"], "SYS_RATELIMIT_UNSUPPORTED_MEDIA_TYPE");
        let message = "the body must be sent as content-type: application/json";
        assert_eq!(error["message"], message);
    }
    let request = Request::post(CHECK).header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(server.send(request, body).await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = Server::start(&[]).await;
    let error = refused(&server.post(CHECK, &" ".repeat(64 * 1024 + 1)).await, 413);
    let expected = json!({
        "code": "SYS_RATELIMIT_BODY_TOO_LARGE",
        "message": "the body must be at most 65536 bytes",
    });
    assert_eq!(error, expected);
    let largest = server.post(CHECK, &" ".repeat(64 * 1024)).await;
    assert_eq!(refused(&largest, 400)["message"], "the body is empty; expected a JSON object");
}

#[tokio::test]
async fn a_body_without_a_length_is_limited_too() {
    let server = Server::start(&[]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {CHECK} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n",
        70_000
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 70_000]).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let server = Server::start(&[]).await;
    let error = refused(&server.get("/api/v1/nothing?user=u1").await, 404);
    let expected = json!({"code": "SYS_RATELIMIT_NOT_FOUND", "message": "no such endpoint: GET /api/v1/nothing"});
    assert_eq!(error, expected);
    for path in ["/console/assets/%ff", "/%ff", "/api/v1/services/%ff"] {
        let reply = server.admin("GET", path, "").await;
        assert_eq!(refused(&reply, 404)["details"], Value::Null, "{path}");
    }
}

#[tokio::test]
async fn a_wrong_method_gets_the_allowed_ones() {
    let server = Server::start(&[]).await;
    let reply = server.get(CHECK).await;
    let error = refused(&reply, 405);
    assert_eq!(error["code"], "SYS_RATELIMIT_METHOD_NOT_ALLOWED");
    assert_eq!(error["message"], "GET is not supported here; the Allow header says what is");
    assert_eq!(reply.header("allow"), "POST");
    let head = server.send(Request::head(CHECK), "").await;
    assert_eq!((head.status.as_u16(), head.text.as_str()), (405, ""));
}

async fn a_slow_request_times_out(backend: &Backend) {
    let server = backend.serve(&[("server.request_timeout_seconds", "1")]).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {CHECK} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: 40\r\n\r\n{{\"scope\""
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains(r#"{"error":{"code":"SYS_RATELIMIT_TIMEOUT","#), "{answer}");
}

#[tokio::test]
async fn a_request_keeps_its_id() {
    let server = Server::start(&[]).await;
    let with_id = |id: &str| Request::get("/healthz").header("x-request-id", id);
    for id in ["trace-1", "a", &"x".repeat(128)] {
        assert_eq!(server.send(with_id(id), "").await.header("x-request-id"), id);
    }
    for id in ["", "a b", "ä", &"x".repeat(129)] {
        let given = server.send(with_id(id), "").await;
        let given = given.header("x-request-id");
        let digits = given.strip_prefix("req_").expect("a new id");
        assert!(digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_hexdigit()), "{given}");
    }
    let one = server.get("/healthz").await;
    let other = server.get("/healthz").await;
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
}
