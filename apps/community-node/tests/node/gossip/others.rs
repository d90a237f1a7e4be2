//! Peers that are not configured: their ids cost nothing.

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use iroh::{EndpointAddr, SecretKey, endpoint::ConnectionError};
use serde_json::{Value, json};
use tokio::time;

use super::peer::TestPeer;
use crate::relay::harness::{Running, SOON, Start};

const REJECTED: &str = r#"ingest_rejected_total{kind="gossip",reason="ratelimit",service="relay"}"#;
const INVALID: &str = r#"ingest_rejected_total{kind="gossip",reason="invalid",service="relay"}"#;

/// A node that follows `rust` with the peer of this name, and the node's address.
async fn node_of(configured: String, document: Value) -> (Running, EndpointAddr) {
    let port = headgate_testkit::free_port();
    let node = Start::new()
        .variable("CN_IROH_BIND", format!("0.0.0.0:{port}"))
        .variable("CN_IROH_SECRET", "07".repeat(32))
        .variable("CN_GOSSIP_TOPICS", "rust")
        .variable("CN_GOSSIP_PEERS", configured)
        .on(document)
        .await;
    let address = EndpointAddr::new(SecretKey::from_bytes(&[7; 32]).public())
        .with_ip_addr(([127, 0, 0, 1], port).into());
    (node, address)
}

/// A peer that joins the node's topic.
async fn joining(peer: TestPeer, node: &EndpointAddr) -> TestPeer {
    let mut peer = peer;
    peer.call("rust", node.clone()).await;
    peer.joined().await;
    peer
}

#[tokio::test]
async fn many_ids_of_one_address_leave_connections_to_others() {
    let configured = TestPeer::start().await;
    // The node does not find it there: it is the peer that connects.
    let name = format!("{}@127.0.0.1:9", configured.id());
    let (_node, address) = node_of(name, json!({})).await;
    let (mut strangers, mut closed) = (Vec::new(), FuturesUnordered::new());
    for _ in 0..5 {
        let stranger = TestPeer::start().await;
        for _ in 0..4 {
            let connection = stranger.connect(address.clone()).await;
            closed.push(async move { connection.closed().await });
        }
        strangers.push(stranger);
    }
    for _ in 0..4 {
        let error = time::timeout(SOON, closed.next()).await.expect("a refusal").unwrap();
        let ConnectionError::ApplicationClosed(close) = error else { panic!("{error}") };
        assert_eq!(&close.reason[..], b"busy");
    }
    joining(configured, &address).await;
    joining(TestPeer::start_at("127.0.0.2:0").await, &address).await;
    assert_eq!(closed.len(), 16);
}

#[tokio::test]
async fn many_ids_of_one_address_share_its_messages() {
    let mut configured = TestPeer::start().await;
    configured.follow("rust").await;
    let document = json!({"rate_limit": {"iroh": {"by_peer": 3}}});
    let (node, address) = node_of(configured.name(), document).await;
    configured.joined().await;
    let [first, second] = [TestPeer::start().await, TestPeer::start().await];
    let strangers = [joining(first, &address).await, joining(second, &address).await];
    for n in 0..6 {
        strangers[n % 2].tell(format!("message {n}")).await;
    }
    node.counted(&format!("{REJECTED} 3")).await;
    let elsewhere = joining(TestPeer::start_at("127.0.0.2:0").await, &address).await;
    for peer in [&elsewhere, &configured] {
        peer.tell("not even JSON").await;
    }
    node.counted(&format!("{INVALID} 5")).await;
}

#[tokio::test]
async fn half_of_the_messages_are_left_to_configured_peers() {
    let mut configured = TestPeer::start().await;
    configured.follow("rust").await;
    let document = json!({"rate_limit": {"iroh": {"global": 4}}});
    let (node, address) = node_of(configured.name(), document).await;
    configured.joined().await;
    let stranger = joining(TestPeer::start().await, &address).await;
    for n in 0..5 {
        stranger.tell(format!("message {n}")).await;
    }
    node.counted(&format!("{REJECTED} 3")).await;
    for n in 0..2 {
        configured.tell(format!("ours {n}")).await;
    }
    node.counted(&format!("{INVALID} 4")).await;
}
