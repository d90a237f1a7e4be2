//! Peers that the operator denies.

use iroh::{EndpointAddr, SecretKey};
use serde_json::json;

use super::peer::{TestPeer, node_with};
use crate::relay::{
    denied::deny,
    harness::{Running, Start, eventually},
};

/// Waits until the node has refused or closed a connection of a denied peer.
async fn refused_a_connection(node: &Running) {
    let counter = r#"ingest_rejected_total{kind="conn",reason="denied",service="relay"} "#;
    let is_counted = || node.metrics().lines().any(|line| line.starts_with(counter));
    eventually(is_counted, || format!("{counter} is not in\n{}", node.metrics())).await;
}

#[tokio::test]
async fn a_peer_that_is_denied_later_loses_the_connection_that_the_node_opened() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    deny(&node, &peers[0].id()).await;
    peers[0].left().await;
    refused_a_connection(&node).await;
}

#[tokio::test]
async fn a_peer_whose_address_is_denied_later_loses_its_connection() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    deny(&node, "127.0.0.0/8").await;
    peers[0].left().await;
    refused_a_connection(&node).await;
}

#[tokio::test]
async fn a_denied_peer_is_refused_and_another_is_accepted_until_it_is_denied() {
    let port = headgate_testkit::free_port();
    let node = Start::new()
        .variable("CN_IROH_BIND", format!("127.0.0.1:{port}"))
        .variable("CN_IROH_SECRET", "07".repeat(32))
        .variable("CN_GOSSIP_TOPICS", "rust")
        .on(json!({}))
        .await;
    let address = EndpointAddr::new(SecretKey::from_bytes(&[7; 32]).public())
        .with_ip_addr(([127, 0, 0, 1], port).into());
    let (mut denied, mut other) = (TestPeer::start().await, TestPeer::start().await);
    deny(&node, &denied.id()).await;
    denied.call("rust", address.clone()).await;
    refused_a_connection(&node).await;

    other.call("rust", address).await;
    other.joined().await;
    deny(&node, &other.id()).await;
    other.left().await;
}

#[tokio::test]
async fn a_node_does_not_connect_to_a_configured_peer_that_is_denied() {
    for by_address in [false, true] {
        let mut peer = TestPeer::start().await;
        peer.follow("rust").await;
        let subject = if by_address { "127.0.0.1".to_owned() } else { peer.id() };
        let node = Start::new()
            .variable("CN_IROH_BIND", "127.0.0.1:0")
            .variable("CN_GOSSIP_TOPICS", "rust")
            .variable("CN_GOSSIP_PEERS", peer.name())
            .denying(subject)
            .on(json!({}))
            .await;
        refused_a_connection(&node).await;
    }
}
