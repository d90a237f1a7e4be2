//! Metrics and logs identify neither clients nor peers.

use headgate_community_node::gossip::LOG_FILTER;
use headgate_testkit::CapturedLog;
use nostr_sdk::{JsonUtil as _, Keys};
use serde_json::json;

use super::peer::{TestPeer, node_with};
use crate::relay::{harness::note, wire::Wire};

#[tokio::test]
async fn metrics_and_logs_identify_nobody() {
    let ours = "headgate=trace,headgate_community_node=trace,headgate_guard=trace";
    let log = CapturedLog::start(&format!("{LOG_FILTER},{ours}"));

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
    let logged = log.text();
    assert!(logged.contains("gossiping as"), "{logged}");
    let (author, client) = (author.public_key().to_hex(), client.public_key().to_hex());
    let events = [theirs.id.to_hex(), ours.id.to_hex()];
    for raw in [&author, &client, &events[0], &events[1], &peer, &peer_at, "secret-name"] {
        assert!(!metrics.contains(raw), "{raw} is in\n{metrics}");
        assert!(!logged.contains(raw), "{raw} is in\n{logged}");
    }
}
