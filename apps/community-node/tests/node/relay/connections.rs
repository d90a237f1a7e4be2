//! Admission of connections.

use serde_json::{Value, json};

use super::{
    harness::{Running, Start, note},
    wire::Wire,
};

fn ws(limits: &Value) -> Value {
    json!({"rate_limit": {"ws": limits}})
}

#[tokio::test]
async fn one_connection_a_minute() {
    let node = Running::on(ws(&json!({"conns_per_minute": 1}))).await;
    let mut wire = Wire::open(&node).await;
    let refused = Wire::try_open(node.address, &[]).await.err().expect("a refusal");
    assert_eq!(refused.status(), 429);
    let retry_after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    assert_eq!(refused.headers()["content-type"], "application/json");
    assert_eq!(refused.headers()["cache-control"], "no-store");
    assert_eq!(refused.headers()["ratelimit-policy"], "\"relay\";q=1;w=60");
    assert!(refused.headers()["ratelimit"].to_str().unwrap().starts_with("\"relay\";r=0;t="));
    let body: Value = serde_json::from_slice(refused.body().as_deref().unwrap()).unwrap();
    assert_eq!(body, json!({"code": "RATE_LIMITED", "message": "rate limited", "details": null}));
    node.counted(r#"ingest_rejected_total{kind="conn",reason="ratelimit",service="relay"} 1"#)
        .await;
    assert!(wire.ask("s", json!({"#t": ["rust"]})).await.is_empty(), "the first connection stays");
}

#[tokio::test]
async fn a_closed_connection_frees_its_place() {
    let node = Running::on(ws(&json!({"concurrent_by_ip": 2}))).await;
    let (first, mut second) = (Wire::open(&node).await, Wire::open(&node).await);
    let refused = Wire::try_open(node.address, &[]).await.err().expect("a refusal");
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    // It is dropped without a close.
    drop(first);
    node.counted("ws_connections 1").await;
    let third = Wire::open(&node).await;
    assert!(second.ask("s", json!({"#t": ["rust"]})).await.is_empty());
    drop((second, third));
    node.counted("ws_connections 0").await;
    node.counted("ws_unauthenticated_connections 0").await;
}

#[tokio::test]
async fn a_dead_connection_frees_its_place() {
    let start = Start::new().timing(|timing| headgate_community_node::relay::Timing {
        ping: std::time::Duration::from_millis(100),
        // Longer than a busy machine stands still: the client and the node stand still together.
        silence: std::time::Duration::from_secs(20),
        ..timing
    });
    let node = start.on(json!({})).await;
    let _frozen = Wire::open(&node).await;
    let mut there = Wire::open(&node).await;
    node.counted("ws_connections 2").await;
    // The other reads, and so answers pings.
    let reading = tokio::spawn(async move {
        let frame = there.next().await;
        (there, frame)
    });
    node.counted("ws_connections 1").await;
    let keys = nostr_sdk::Keys::generate();
    assert!(!reading.is_finished(), "a client that answers stays");
    reading.abort();
    let mut wire = Wire::open(&node).await;
    assert_eq!(wire.publish(&note(&keys, "rust", "1", node.now())).await[2], true);
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_its_own_budget() {
    let start = Start::new().variable("CN_TRUSTED_PROXIES", "127.0.0.0/8");
    let node = start.on(ws(&json!({"conns_per_minute": 1, "events_per_minute": 1}))).await;
    let keys = nostr_sdk::Keys::generate();
    let mut open = Vec::new();
    for client in 0..50 {
        let address = format!("198.51.100.{client}");
        let headers = [("x-forwarded-for", address.as_str())];
        let mut wire = Wire::try_open(node.address, &headers).await.expect("a budget of its own");
        let event = note(&keys, "rust", &address, node.now());
        assert_eq!(wire.publish(&event).await[2], true, "{address}");
        let more = note(&keys, "rust", &format!("{address} again"), node.now());
        assert_eq!(wire.publish(&more).await[2], false, "{address}");
        assert_eq!(Wire::try_open(node.address, &headers).await.err().unwrap().status(), 429);
        open.push(wire);
    }
    node.counted("ws_connections 50").await;
}

#[tokio::test]
async fn without_a_trusted_proxy_forwarding_headers_are_ignored() {
    let node = Running::on(ws(&json!({"conns_per_minute": 1}))).await;
    let _wire = Wire::open(&node).await;
    for client in 0..10 {
        let address = format!("198.51.100.{client}");
        for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
            let refused = Wire::try_open(node.address, &[(header, &address)]).await.err();
            assert_eq!(refused.expect("a refusal").status(), 429);
        }
    }
}

#[tokio::test]
async fn a_request_without_an_upgrade_holds_no_place() {
    let node = Running::on(ws(&json!({"concurrent_by_ip": 1}))).await;
    for _ in 0..3 {
        let answer = plain(&node, "GET").await;
        let status = answer.lines().next().unwrap();
        assert!(status.contains("400") || status.contains("426"), "{status}");
        assert!(answer.contains(r#""code":"UPGRADE_REQUIRED""#), "{answer}");
    }
    let _wire = Wire::open(&node).await;
    assert!(plain(&node, "GET").await.starts_with("HTTP/1.1 429"));
}

#[tokio::test]
async fn other_methods_are_limited_as_ordinary_requests() {
    let node = Running::on(json!({})).await;
    let answer = plain(&node, "POST").await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.contains("\r\nx-request-id: req_"), "{answer}");
    assert!(answer.contains(r#""code":"METHOD_NOT_ALLOWED""#), "{answer}");
    let mut answers = vec![answer];
    while answers.len() < 200 && !answers[answers.len() - 1].starts_with("HTTP/1.1 429") {
        answers.push(plain(&node, "BREW").await);
    }
    let last = answers.pop().unwrap();
    assert!(last.starts_with("HTTP/1.1 429") && last.contains("RATE_LIMITED"), "{last}");
    let labels = r#"method="OTHER",route="/relay",service="node",status="405""#;
    node.counted(&format!("http_requests_total{{{labels}}} {}", answers.len() - 1)).await;
    let _wire = Wire::open(&node).await;
}

async fn plain(node: &Running, method: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let mut socket = tokio::net::TcpStream::connect(node.address).await.unwrap();
    let request = format!("{method} /relay HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}
