//! Clients that do not read.

use std::time::Duration;

use headgate_community_node::relay::Timing;
use nostr_sdk::Keys;
use serde_json::json;

use super::{
    harness::{Start, note},
    wire::Wire,
};

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_others_are_not_slowed() {
    let start =
        Start::new().timing(|timing| Timing { answer: Duration::from_millis(500), ..timing });
    let node = start.on(json!({})).await;
    let keys = Keys::generate();
    let (mut slow, mut writer) = (Wire::open(&node).await, Wire::open(&node).await);
    slow.ask("s", json!({"#t": ["rust"]})).await;
    node.counted("ws_connections 2").await;
    // More than the sockets' buffers and the relay's queue hold together.
    let content = "x".repeat(30_000);
    for n in 0..2_000 {
        let event = note(&keys, "rust", &format!("{n}{content}"), node.now());
        assert_eq!(writer.publish(&event).await[2], true);
        if node.metrics().contains("ws_connections 1\n") {
            break;
        }
    }
    node.counted("ws_connections 1").await;
    assert_eq!(writer.publish(&note(&keys, "rust", "after", node.now())).await[2], true);
}
