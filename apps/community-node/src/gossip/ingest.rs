//! Limits, verifies and publishes an incoming message.

use std::sync::Arc;

use headgate_guard::{PeerGuard, PeerId, PeerLimits};
use iroh::EndpointId;
use iroh_gossip::api::Message;

use super::{addresses::PeerAddresses, is_configured};
use crate::{
    Node,
    metrics::{Kind, Reason},
    relay::{
        Relay, SERVICE,
        event::{EventBounds, MAX_AGE_SECONDS, VerifiedEvent, claimed_id},
        events::{Events, Publication, Source},
        limits::{author_limits, other_peer_limits, peer_limits},
    },
};

/// Prefix of authors' keys, which sets them apart from peers.
const AUTHORS: &str = "gossip-author";

/// Prefix of the keys of peers that are not configured.
const OTHERS: &str = "gossip-other";

/// Key of peers whose address is unknown: they have just left.
const NOWHERE: &str = "nowhere";

/// Publishes the messages that the guards admit.
#[derive(Clone)]
pub(super) struct Ingest {
    pub(super) node: Arc<Node>,
    pub(super) events: Arc<Events>,
    addresses: PeerAddresses,
    peers: PeerGuard,
    /// Counts peers that are not configured, by address.
    others: PeerGuard,
    authors: PeerGuard,
}

// === impl Ingest ===

impl Ingest {
    pub(super) fn new(node: &Arc<Node>, relay: &Relay, addresses: PeerAddresses) -> Self {
        let backend = node.guards.clone();
        // The names are valid. If they were not, all would be counted like peers, under other ids.
        let named = |name| backend.clone().namespace(name).unwrap_or_else(|_| backend.clone());
        Self {
            node: Arc::clone(node),
            events: Arc::clone(relay.events()),
            addresses,
            others: PeerGuard::new(other_limits(node), named(OTHERS)),
            authors: PeerGuard::new(node.relay.with(author_limits), named(AUTHORS)),
            peers: PeerGuard::new(node.relay.with(peer_limits), backend),
        }
    }

    /// Applies the limits of every new document; never returns.
    pub(super) async fn follow_document(self) {
        let mut changes = self.node.relay.subscribe();
        loop {
            self.peers.replace(self.node.relay.with(peer_limits));
            self.others.replace(other_limits(&self.node));
            self.authors.replace(self.node.relay.with(author_limits));
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Publishes a message of `topic`; one that is refused is dropped and counted.
    pub(super) async fn take(&self, topic: &str, message: &Message) {
        self.node.metrics.gossip_received.inc();
        let peer = message.delivered_from.to_string();
        if self.node.denies_key(&peer) {
            return self.reject(Reason::Denied, Kind::Gossip);
        }
        if !self.admits(message.delivered_from, &peer).await {
            return self.reject(Reason::RateLimit, Kind::Gossip);
        }
        let Ok(json) = str::from_utf8(&message.content) else {
            return self.reject(Reason::Invalid, Kind::Gossip);
        };
        // Several neighbours may deliver the same message.
        if claimed_id(json).is_some_and(|id| self.events.contains(&id)) {
            return self.node.metrics.dedupe_hits.inc();
        }
        let Some(event) = self.read(topic, json) else {
            return self.reject(Reason::Invalid, Kind::Gossip);
        };
        let author = event.author().to_hex();
        if self.node.denies_key(&author) {
            return self.reject(Reason::Denied, Kind::GossipAuthor);
        }
        if self.authors.admit(PeerId::Node(&author)).await.is_err() {
            return self.reject(Reason::RateLimit, Kind::GossipAuthor);
        }
        self.node.metrics.ingest_received.with_label_values(&[SERVICE, "gossip"]).inc();
        let now = self.node.seconds();
        match self.events.publish(event, Source::Gossip, now, MAX_AGE_SECONDS) {
            Publication::Duplicate => self.node.metrics.dedupe_hits.inc(),
            Publication::New | Publication::Outdated => self.node.metrics.dedupe_misses.inc(),
            Publication::Deleted => self.reject(Reason::Restricted, Kind::Gossip),
        }
    }

    /// Counts a message of `id`, whose text is `peer`.
    async fn admits(&self, id: EndpointId, peer: &str) -> bool {
        if !is_configured(&self.node, id) {
            let address = self.addresses.of(id);
            let source = address.map_or(PeerId::Node(NOWHERE), PeerId::Address);
            if self.others.admit(source).await.is_err() {
                return false;
            }
        }
        self.peers.admit(PeerId::Node(peer)).await.is_ok()
    }

    fn read(&self, topic: &str, json: &str) -> Option<VerifiedEvent> {
        let bounds = self.node.relay.with(|document| EventBounds::of(&document.limits));
        let event = VerifiedEvent::read(json, bounds, self.node.seconds()).ok()?;
        // A deletion has the topics of the events that it deletes.
        let is_about_it = event.is_deletion() || event.topics().any(|named| named == topic);
        (is_about_it && !event.is_protected()).then_some(event)
    }

    fn reject(&self, reason: Reason, kind: Kind) {
        self.node.metrics.reject_kind(SERVICE, reason, kind);
    }
}

fn other_limits(node: &Node) -> PeerLimits {
    let has_configured_peers = !node.config.peers.is_empty();
    node.relay.with(|document| other_peer_limits(document, has_configured_peers))
}
