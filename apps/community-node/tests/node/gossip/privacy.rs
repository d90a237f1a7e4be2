//! Metrics and logs identify neither clients nor peers.

use std::{
    io,
    sync::{Arc, Mutex},
};

use headgate_community_node::gossip::LOG_FILTER;
use nostr_sdk::{JsonUtil as _, Keys};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::peer::{TestPeer, node_with};
use crate::relay::{harness::note, wire::Wire};

/// Log of this thread, on which the test's node runs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn metrics_and_logs_identify_nobody() {
    // With a single subscriber, callsites first used by other tests' threads would be cached as
    // disabled.
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let log = Log::default();
    let lines = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false);
    let ours = "headgate=trace,headgate_community_node=trace,headgate_guard=trace";
    let lines = lines.with_env_filter(format!("{LOG_FILTER},{ours}"));
    let _guard = tracing::subscriber::set_default(lines.finish());

    let mut peers = [TestPeer::start().await];
    let document = json!({"rate_limit": {
        "ws": {"events_per_minute": 1, "reqs_per_minute": 1}, "iroh": {"by_peer": 2},
    }});
    let node = node_with(&mut peers, document).await;
    let peer = peers[0].name();
    let (peer, peer_at) = peer.split_once('@').unwrap();
    let (peer, peer_at) = (peer[..10].to_owned(), peer_at.to_owned());
    let (author, client) = (Keys::generate(), Keys::generate());
    let theirs = note(&author, "rust", "theirs", node.now());
    for message in [theirs.as_json(), "nonsense".to_owned(), "too much".to_owned()] {
        peers[0].tell(message).await;
    }
    node.counted("gossip_received_total 3").await;
    let mut wire = Wire::open(&node).await;
    let ours = note(&client, "rust", "ours", node.now());
    wire.publish(&ours).await;
    wire.publish(&note(&client, "rust", "too much", node.now())).await;
    wire.ask("secret-name", json!({"#t": ["rust"]})).await;
    wire.send(json!(["REQ", "t", {"#t": ["rust"]}])).await;
    wire.expect("CLOSED").await;
    drop((wire, peers));
    node.counted("ws_connections 0").await;

    let metrics = node.metrics();
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("gossiping as"), "{logged}");
    let (author, client) = (author.public_key().to_hex(), client.public_key().to_hex());
    let events = [theirs.id.to_hex(), ours.id.to_hex()];
    for raw in [&author, &client, &events[0], &events[1], &peer, &peer_at, "secret-name"] {
        assert!(!metrics.contains(raw), "{raw} is in\n{metrics}");
        assert!(!logged.contains(raw), "{raw} is in\n{logged}");
    }
}
