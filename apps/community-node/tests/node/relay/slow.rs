//! Clients that do not read.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate_community_node::relay::{Bounds, Timing};
use nostr_sdk::Keys;
use prometheus::IntGauge;
use serde_json::json;
use tokio::time;

use super::{
    harness::{Start, eventually, note},
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

/// Without the bound, each slow client would keep its events for as long as it may take to read.
#[tokio::test]
async fn what_slow_clients_hold_is_bounded_and_readers_are_served() {
    let max_pending_bytes = 100_000;
    let start = Start::new()
        .timing(|timing| Timing { answer: Duration::from_secs(3_600), ..timing })
        .bounds(Bounds { max_pending_bytes, ..Bounds::default() });
    let node = start.on(json!({})).await;
    let keys = Keys::generate();
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut wire = Wire::open(&node).await;
        for n in 0..20 {
            wire.ask(&format!("s{n}"), json!({"#t": ["rust"]})).await;
        }
        slow.push(wire);
    }
    let (mut writer, mut reader) = (Wire::open(&node).await, Wire::open(&node).await);
    reader.ask("r", json!({"#t": ["rust"]})).await;
    node.counted("ws_connections 10").await;

    // Three of these are pending at most. The last three slow clients harm no others.
    let content = "x".repeat(30_000);
    let connections = &node.node.metrics.ws_connections;
    let most = highest(node.node.metrics.ws_pending_bytes.clone());
    for n in 0..500 {
        let event = note(&keys, "rust", &format!("{n}{content}"), node.now());
        assert_eq!(writer.publish(&event).await[2], true);
        assert_eq!(reader.expect("EVENT").await[2]["id"], json!(event.id));
        if connections.get() <= 5 {
            break;
        }
    }
    eventually(|| connections.get() <= 5, || format!("{} connections", connections.get())).await;
    let most = most.load(Relaxed);
    assert!((90_000..=i64::from(max_pending_bytes)).contains(&most), "{most}");
    assert_eq!(writer.publish(&note(&keys, "rust", "after", node.now())).await[2], true);
    reader.expect("EVENT").await;
}

/// Highest value of a metric from now on.
fn highest(metric: IntGauge) -> Arc<AtomicI64> {
    let highest = Arc::new(AtomicI64::new(0));
    let seen = Arc::clone(&highest);
    tokio::spawn(async move {
        loop {
            seen.fetch_max(metric.get(), Relaxed);
            time::sleep(Duration::from_millis(1)).await;
        }
    });
    highest
}
