//! Metrics.

use nostr_sdk::Keys;
use serde_json::json;

use super::{
    harness::{Running, note},
    wire::Wire,
};

#[tokio::test]
async fn metrics_count_by_kind_and_identify_nobody() {
    let document = json!({"rate_limit": {"ws": {"events_per_minute": 1, "reqs_per_minute": 1}}});
    let node = Running::on(document).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let events = ["1", "2"].map(|text| note(&keys, "secret-topic", text, node.now()));
    for event in &events {
        wire.publish(event).await;
    }
    wire.ask("s", json!({"#t": ["secret-topic"]})).await;
    wire.send(json!(["REQ", "t", {"#t": ["secret-topic"]}])).await;
    wire.expect("CLOSED").await;
    wire.expect("NOTICE").await;
    wire.send_text("nonsense").await;
    wire.expect("NOTICE").await;
    for line in [
        "ws_connections 1",
        "ws_unauthenticated_connections 1",
        "ws_event_total 2",
        "ws_req_total 2",
        "gossip_received_total 0",
        r#"ingest_received_total{service="relay",source="ws"} 1"#,
        r#"ingest_rejected_total{kind="event",reason="ratelimit",service="relay"} 1"#,
        r#"ingest_rejected_total{kind="req",reason="ratelimit",service="relay"} 1"#,
        r#"ingest_rejected_total{kind="invalid",reason="invalid",service="relay"} 1"#,
    ] {
        node.counted(line).await;
    }
    let metrics = node.metrics();
    let pubkey = keys.public_key().to_hex();
    for raw in ["127.0.0.1", &pubkey, &events[0].id.to_hex(), "secret-topic"] {
        assert!(!metrics.contains(raw), "{raw} is in\n{metrics}");
    }
}
