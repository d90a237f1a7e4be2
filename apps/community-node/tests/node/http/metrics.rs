//! The listener of metrics.

use hyper::Request;

use super::harness::Server;

#[tokio::test]
async fn metrics_with_a_listener_of_their_own_are_served_nowhere_else() {
    let server = Server::with(&[("CN_METRICS_LISTEN", "127.0.0.1:0")]).await;
    server.get("/metrics").await.is_refused(404, "NOT_FOUND");
    server.get("/healthz").await.is(200);
    let there = server.metrics_address.unwrap();
    let metrics = Server::send_to(there, Request::get("/metrics"), "").await;
    metrics.is(200);
    assert!(metrics.text.contains("\ncn_up 1\n"), "{}", metrics.text);
    Server::send_to(there, Request::get("/healthz"), "").await.is(200);
    for path in ["/v1/policies/current", "/v1/admin/services", "/relay"] {
        let reply = Server::send_to(there, Request::get(path), "").await;
        reply.is_refused(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn metrics_are_served_on_the_main_listener_by_default() {
    let server = Server::start().await;
    let metrics = server.get("/metrics").await.text;
    let value = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok())
    };
    for name in ["gossip_sent_total", "dedupe_hits_total", "dedupe_misses_total"] {
        assert_eq!(value(name), Some(0), "{name}");
    }
    #[cfg(target_os = "linux")]
    assert!(value("process_resident_memory_bytes").unwrap() > 1 << 20, "{metrics}");
}
