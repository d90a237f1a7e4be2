//! `GET /healthz`, `GET /readyz` and `GET /metrics`

use hyper::Request;
use serde_json::json;

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, Server},
};

on_both_backends!(a_server_is_alive_and_ready);

async fn a_server_is_alive_and_ready(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let live = server.get("/healthz").await;
    assert_eq!((live.status.as_u16(), live.json()), (200, json!({"status": "ok"})));
    let ready = server.get("/readyz").await;
    let expected = json!({"status": "ready", "checks": {"store": "ok", "database": "ok"}});
    assert_eq!((ready.status.as_u16(), ready.json()), (200, expected));
}

#[tokio::test]
async fn requests_and_decisions_are_counted() {
    let server = Server::start(&[
        ("app.name", "gate"),
        ("app.environment", "test"),
        ("memory.capacity", "5000"),
        ("ratelimit.default_limit", "2"),
        ("ratelimit.default_window_seconds", "8640000"),
    ])
    .await;
    for _ in 0..3 {
        server.check_user("u1").await;
    }
    server.post(CHECK, "{}").await;
    server.send(Request::builder().method("BREW").uri("/secret/path"), "").await;

    let reply = server.get("/metrics").await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        r#"headgate_decisions_total{outcome="allowed",service="gate"} 2"#,
        r#"headgate_decisions_total{outcome="denied",service="gate"} 1"#,
        r#"headgate_degraded_decisions_total{mode="open",reason="timeout",service="gate"} 0"#,
        r#"headgate_check_duration_seconds_count{service="gate"} 3"#,
        r#"headgate_store_up{store="memory",service="gate"} 1"#,
        r#"headgate_memory_slots{service="gate"} 5000"#,
        r#"headgate_memory_slots_used{service="gate"} 1"#,
        r#"headgate_memory_overflowed_total{service="gate"} 0"#,
        r#"http_requests_total{method="POST",path="/api/v1/ratelimit/check",status="200",service="gate"} 3"#,
        r#"http_requests_total{method="POST",path="/api/v1/ratelimit/check",status="400",service="gate"} 1"#,
        r#"http_requests_total{method="other",path="unmatched",status="404",service="gate"} 1"#,
        r#"http_request_duration_seconds_count{method="POST",path="/api/v1/ratelimit/check",service="gate"} 4"#,
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line}\nin\n{}", reply.text);
    }
    assert!(reply.text.contains(r#"environment="test""#));
    assert!(!reply.text.contains("u1") && !reply.text.contains("secret"), "{}", reply.text);
}

#[tokio::test]
async fn a_full_memory_is_counted() {
    let server = Server::start(&[("memory.capacity", "1")]).await;
    for subject in ["a", "b", "c"] {
        server.check_user(subject).await;
    }
    let text = server.get("/metrics").await.text;
    let shared = text.lines().find_map(|line| {
        line.strip_prefix(r#"headgate_memory_overflowed_total{service="headgate"} "#)
    });
    // The probe of the store finds it full too.
    let shared: u64 = shared.unwrap().parse().unwrap();
    assert!(shared >= 2, "{text}");
}

#[tokio::test]
async fn the_root_redirects_to_the_console_or_the_documentation() {
    for (console, page) in [("true", "/console"), ("false", "/api-docs")] {
        let server = Server::start(&[("console.enabled", console)]).await;
        let reply = server.get("/").await;
        assert_eq!((reply.status.as_u16(), reply.header("location")), (303, page));
        assert!(reply.text.contains(page), "{}", reply.text);
        assert_eq!(server.get(page).await.status, 200);
    }
}
