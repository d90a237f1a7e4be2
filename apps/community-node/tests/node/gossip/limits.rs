//! Limits of peers.

use nostr_sdk::{EventBuilder, JsonUtil as _, Keys, Kind, Tag, Timestamp};
use serde_json::json;

use super::peer::{TestPeer, node_with};
use crate::relay::{harness::note, wire::Wire};

const REJECTED: &str = r#"ingest_rejected_total{kind="gossip",reason="ratelimit",service="relay"}"#;

#[tokio::test]
async fn a_flooding_peer_is_limited_and_another_is_not() {
    let mut peers = [TestPeer::start().await, TestPeer::start().await];
    let node = node_with(&mut peers, json!({"rate_limit": {"iroh": {"by_peer": 3}}})).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    let keys = Keys::generate();
    for n in 0..20 {
        // Not even JSON: it is counted before it is parsed.
        peers[0].tell(format!("flood {n}")).await;
    }
    node.counted(&format!("{REJECTED} 17")).await;
    node.counted(r#"ingest_rejected_total{kind="gossip",reason="invalid",service="relay"} 3"#)
        .await;
    // Its valid messages are dropped, too; those of the other are not.
    peers[0].tell(note(&keys, "rust", "dropped", node.now()).as_json()).await;
    node.counted(&format!("{REJECTED} 18")).await;
    let good = note(&keys, "rust", "heard", node.now());
    peers[1].tell(good.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", good]));
    node.counted("gossip_received_total 22").await;
}

#[tokio::test]
async fn all_peers_share_one_budget() {
    let mut peers = [TestPeer::start().await, TestPeer::start().await];
    let node = node_with(&mut peers, json!({"rate_limit": {"iroh": {"global": 5}}})).await;
    for n in 0..10 {
        peers[n % 2].tell(format!("message {n}")).await;
    }
    node.counted("gossip_received_total 10").await;
    node.counted(&format!("{REJECTED} 5")).await;
}

#[tokio::test]
async fn an_author_has_one_budget_across_peers() {
    let mut peers = [TestPeer::start().await, TestPeer::start().await];
    let document = json!({"rate_limit": {"ws": {"event_by_pubkey": 2}}});
    let node = node_with(&mut peers, document).await;
    let (loud, quiet) = (Keys::generate(), Keys::generate());
    for n in 0..4 {
        let event = note(&loud, "rust", &n.to_string(), node.now());
        peers[n % 2].tell(event.as_json()).await;
    }
    let by_author =
        r#"ingest_rejected_total{kind="gossip_author",reason="ratelimit",service="relay"} 2"#;
    node.counted(by_author).await;
    let mut wire = Wire::open(&node).await;
    assert_eq!(wire.ask("s", json!({"#t": ["rust"]})).await.len(), 2);
    // The peer that forwarded it is not limited.
    let good = note(&quiet, "rust", "heard", node.now());
    peers[0].tell(good.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", good]));
}

#[tokio::test]
async fn an_ephemeral_event_is_charged_to_its_author_once_however_many_peers_deliver_it() {
    let mut peers = [TestPeer::start().await, TestPeer::start().await];
    let document = json!({"rate_limit": {"ws": {"event_by_pubkey": 2}}});
    let node = node_with(&mut peers, document).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    let keys = Keys::generate();
    let typing = EventBuilder::new(Kind::from(20_001), "").tag(Tag::hashtag("rust"));
    let typing = typing.custom_created_at(Timestamp::from_secs(node.now()));
    let typing = typing.sign_with_keys(&keys).unwrap();
    for peer in &peers {
        peer.tell(typing.as_json()).await;
    }
    node.counted("gossip_received_total 2").await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", typing]));
    let good = note(&keys, "rust", "heard", node.now());
    peers[0].tell(good.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", good]), "once, and the author has one left");
    let repeated = wire.publish(&typing).await;
    assert_eq!(repeated, json!(["OK", typing.id, true, "duplicate: already have this event"]));
}

#[tokio::test]
async fn a_new_document_applies_to_connected_peers() {
    let mut peers = [TestPeer::start().await];
    let mut node = node_with(&mut peers, json!({"rate_limit": {"iroh": {"by_peer": 1}}})).await;
    for message in ["nonsense", "more nonsense"] {
        peers[0].tell(message).await;
    }
    node.counted(&format!("{REJECTED} 1")).await;
    node.put(json!({"rate_limit": {"enabled": false, "iroh": {"by_peer": 1}}}));
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    let event = note(&keys, "rust", "heard", node.now());
    peers[0].tell(event.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", event]));
}
