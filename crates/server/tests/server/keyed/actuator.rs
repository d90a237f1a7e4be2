//! `/actuator/*`, and the metrics that the document's queries name.

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use super::backend::Backend;
use crate::harness::Server;

#[tokio::test]
async fn health_and_info_name_the_server() {
    let keys = [("app.name", "gate"), ("app.version", "1.2.3")];
    let server = Server::start(&keys).await;
    let details =
        json!({"store": "memory", "defaultAlgorithm": "TOKEN_BUCKET", "failMode": "capped"});
    let expected = json!({
        "status": "UP",
        "components": {"rateLimiter": {"status": "UP", "details": details}},
    });
    let health = server.get("/actuator/health").await;
    assert_eq!((health.status.as_u16(), health.json()), (200, expected));
    let info = server.get("/actuator/info").await;
    assert_eq!(info.json(), json!({"app": {"name": "gate", "version": "1.2.3"}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_includes_redis_if_configured() {
    let backend = Backend::redis(require!(Redis::start()));
    let server = backend.serve(&[]).await;
    let health = server.get("/actuator/health").await.json();
    assert_eq!(health["components"]["redis"], json!({"status": "UP"}));

    let lost = Server::start(&[("redis.url", "redis://127.0.0.1:1")]).await;
    let reply = lost.get("/actuator/health").await;
    let health = reply.json();
    // The status is 200, so that load balancers keep it in service: it still decides.
    assert_eq!((reply.status.as_u16(), &health["status"]), (200, &json!("DEGRADED")));
    assert_eq!(health["components"]["redis"]["status"], "DOWN");
    assert_eq!(health["components"]["rateLimiter"]["status"], "DEGRADED");
}

#[tokio::test]
async fn the_documents_queries_find_their_series() {
    let server = Server::start(&[("app.name", "gate")]).await;
    for _ in 0..3 {
        server.check_key("algorithm=SLIDING_WINDOW&key=u1&permits=50").await;
    }
    let reply = server.get("/actuator/prometheus").await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let labels = r#"algorithm="SLIDING_WINDOW",allowed="true",application="gate",service="gate""#;
    let denied = labels.replace("true", "false");
    for line in [
        format!("rate_limiter_requests_total{{{labels}}} 2"),
        format!("rate_limiter_requests_total{{{denied}}} 1"),
        format!("rate_limiter_check_seconds_count{{{labels}}} 2"),
        format!("rate_limiter_check_seconds_bucket{{{denied},le=\"+Inf\"}} 1"),
    ] {
        assert!(reply.text.lines().any(|found| found == line), "{line}\nin\n{}", reply.text);
    }
    assert!(reply.text.contains("# TYPE rate_limiter_check_seconds histogram"));
    assert!(!reply.text.contains("u1"), "{}", reply.text);
    // Peeks and rejected requests are not counted as checks.
    server.remaining("algorithm=SLIDING_WINDOW&key=u1").await;
    server.check_key("algorithm=SLIDING_WINDOW&key=u1&permits=0").await;
    let again = server.get("/metrics").await.text;
    let line = format!("rate_limiter_requests_total{{{denied}}} 1");
    assert!(again.lines().any(|found| found == line), "{line}\nin\n{again}");
}

#[tokio::test]
async fn disabled_metrics_are_not_served() {
    let server = Server::start(&[("observability.metrics.enabled", "false")]).await;
    assert_eq!(server.get("/actuator/prometheus").await.status, 404);
    let document = server.get("/api-docs/openapi.json").await.json();
    assert_eq!(document["paths"]["/actuator/prometheus"], Value::Null);
    assert_eq!(server.get("/actuator/health").await.status, 200);
}
