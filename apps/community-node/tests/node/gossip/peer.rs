//! A peer that sends any message.

use futures_util::StreamExt as _;
use iroh::{
    Endpoint, EndpointAddr, RelayMode,
    address_lookup::memory::MemoryLookup,
    endpoint::{Connection, PortmapperConfig, presets},
    protocol::Router,
};
use iroh_gossip::{
    TopicId,
    api::{Event, GossipReceiver, GossipSender},
    net::Gossip,
};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use tokio::time;

use crate::relay::harness::{Running, SOON, Start};

/// A peer that follows one topic.
pub(crate) struct TestPeer {
    router: Router,
    gossip: Gossip,
    topic: Option<(GossipSender, GossipReceiver)>,
    lookup: MemoryLookup,
}

// === impl TestPeer ===

impl TestPeer {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    pub(crate) async fn start_at(address: &str) -> Self {
        let lookup = MemoryLookup::new();
        let endpoint = Endpoint::builder(presets::Minimal)
            .relay_mode(RelayMode::Disabled)
            .portmapper_config(PortmapperConfig::Disabled)
            .clear_ip_transports()
            .address_lookup(lookup.clone())
            .bind_addr(address)
            .unwrap()
            .bind()
            .await
            .unwrap();
        let gossip = Gossip::builder().max_message_size(65_536).spawn(endpoint.clone());
        let router = Router::builder(endpoint).accept(iroh_gossip::ALPN, gossip.clone()).spawn();
        Self { router, gossip, topic: None, lookup }
    }

    /// Its id.
    pub(crate) fn id(&self) -> String {
        self.router.endpoint().id().to_string()
    }

    /// Its id and address, as in a node's configuration.
    pub(crate) fn name(&self) -> String {
        let endpoint = self.router.endpoint();
        format!("{}@{}", endpoint.id(), endpoint.bound_sockets()[0])
    }

    /// Follows `topic`, and waits for neighbours.
    pub(crate) async fn follow(&mut self, topic: &str) {
        let topic = self.gossip.subscribe(topic_id(topic), Vec::new()).await.unwrap();
        self.topic = Some(topic.split());
    }

    /// Waits for a neighbour.
    pub(crate) async fn joined(&mut self) {
        let (_, receiver) = self.topic.as_mut().unwrap();
        time::timeout(SOON, receiver.joined()).await.expect("a neighbour").unwrap();
    }

    /// Waits until a neighbour has left.
    pub(crate) async fn left(&mut self) {
        let (_, receiver) = self.topic.as_mut().unwrap();
        let gone = async {
            while !matches!(receiver.next().await.unwrap().unwrap(), Event::NeighborDown(_)) {}
        };
        time::timeout(SOON, gone).await.expect("the neighbour to leave");
    }

    /// Joins the followers of the topic at a node.
    pub(crate) async fn call(&mut self, topic: &str, node: EndpointAddr) {
        self.lookup.add_endpoint_info(node.clone());
        let topic = self.gossip.subscribe(topic_id(topic), vec![node.id]).await.unwrap();
        self.topic = Some(topic.split());
    }

    /// Opens a connection, and sends nothing.
    pub(crate) async fn connect(&self, node: EndpointAddr) -> Connection {
        self.router.endpoint().connect(node, iroh_gossip::ALPN).await.unwrap()
    }

    /// Sends a message to its neighbours only.
    pub(crate) async fn tell(&self, message: impl Into<Vec<u8>>) {
        let (sender, _) = self.topic.as_ref().unwrap();
        sender.broadcast_neighbors(message.into().into()).await.unwrap();
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        let (_, receiver) = self.topic.as_mut().unwrap();
        let message = async {
            loop {
                if let Event::Received(message) = receiver.next().await.unwrap().unwrap() {
                    return serde_json::from_slice(&message.content).unwrap();
                }
            }
        };
        time::timeout(SOON, message).await.expect("a message")
    }
}

/// Id of the topic of this name.
fn topic_id(name: &str) -> TopicId {
    TopicId::from_bytes(digest(&SHA256, name.as_bytes()).as_ref().try_into().unwrap())
}

/// A node that follows `rust` with `peers`, which follow it, too.
pub(crate) async fn node_with(peers: &mut [TestPeer], document: Value) -> Running {
    let mut names = Vec::new();
    for peer in &mut *peers {
        peer.follow("rust").await;
        names.push(peer.name());
    }
    let node = Start::new()
        .variable("CN_IROH_BIND", "127.0.0.1:0")
        .variable("CN_GOSSIP_TOPICS", "rust")
        .variable("CN_GOSSIP_PEERS", names.join(","))
        .on(document)
        .await;
    for peer in peers {
        peer.joined().await;
    }
    node
}
