//! Metrics and logs identify no clients.

use headgate_testkit::CapturedLog;
use hyper::Request;
use serde_json::json;

use super::harness::Server;

#[tokio::test]
async fn metrics_and_logs_identify_nobody() {
    let filter = "info,headgate=trace,headgate_community_node=trace,headgate_guard=trace";
    let log = CapturedLog::start(filter);

    let server = Server::start().await;
    let config = json!({
        "rate_limit": {"http": {"by_pubkey": 5}, "public_per_minute": 2},
        "quota": {"search_requests_per_day": 1},
    });
    server.configure("user-api", config).await;
    let [here, there] = ["198.51.100.77", "2001:db8:aaaa:bbbb::7"];
    let ada = server.client(1, here).await;
    ada.get("/v1/search?q=hushhush").await.is(200);
    ada.get_as("id-of-a-client", "/v1/search?q=hushhush").await.is_refused(402, "QUOTA_EXCEEDED");
    let path = format!("/v1/trust/{}", ada.pubkey());
    for status in [200, 200, 200, 200, 200, 429] {
        ada.get(&path).await.is(status);
    }
    for status in [200, 200, 429] {
        server.get_from(there, "/v1/bootstrap/topics/secretclub/services").await.is(status);
    }
    server.get_from(here, "/secretplace").await.is(404);
    server.login("hunter2hunter2").await.is(401);
    server
        .send(Request::get("/v1/search").header("authorization", "Bearer tok3n"), "")
        .await
        .is(401);

    let metrics = server.get("/metrics").await.text;
    let logged = log.text();
    assert!(logged.contains("answered"), "{logged}");
    let ours = [
        "198.51.100.77",
        "2001:db8:aaaa",
        "bbbb::7",
        "secretclub",
        "secretplace",
        "hushhush",
        "hunter2",
        "tok3n",
        "id-of-a-client",
        &ada.pubkey(),
        &ada.token,
    ];
    for name in ours {
        assert!(!metrics.contains(name), "{name} in {metrics}");
        assert!(!logged.contains(name), "{name} in {logged}");
    }
    for line in [
        r#"route="/v1/trust/{pubkey}",service="user-api",status="429"} 1"#,
        r#"route="/v1/bootstrap/topics/{topic}/services",service="bootstrap",status="429"} 1"#,
        r#"route="unmatched""#,
        r#"rate_limited_total{class="protected",limit="subject",service="user-api"} 1"#,
        r#"rate_limited_total{class="bootstrap",limit="address",service="bootstrap"} 1"#,
        r#"auth_failure_total{service="admin"} 1"#,
        r#"reason="ratelimit",service="user-api"} 1"#,
        r#"reason="quota",service="user-api"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} not in {metrics}");
    }
}
