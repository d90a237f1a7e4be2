//! Limits, verifies and publishes an incoming message.

use std::sync::Arc;

use headgate_guard::{PeerGuard, PeerId};
use iroh_gossip::api::Message;

use crate::{
    Node,
    metrics::{Kind, Reason},
    relay::{
        Relay, SERVICE,
        event::{EventBounds, MAX_AGE_SECONDS, VerifiedEvent, claimed_id},
        events::{Events, Publication, Source},
        limits::{author_limits, peer_limits},
    },
};

/// Prefix of authors' keys, which sets them apart from peers.
const AUTHORS: &str = "gossip-author";

/// Publishes the messages that the guards admit.
#[derive(Clone)]
pub(super) struct Ingest {
    pub(super) node: Arc<Node>,
    pub(super) events: Arc<Events>,
    peers: PeerGuard,
    authors: PeerGuard,
}

// === impl Ingest ===

impl Ingest {
    pub(super) fn new(node: &Arc<Node>, relay: &Relay) -> Self {
        let backend = node.guards.clone();
        // The name is valid. If it were not, authors would be counted like peers, under other ids.
        let authors = backend.clone().namespace(AUTHORS).unwrap_or_else(|_| backend.clone());
        Self {
            node: Arc::clone(node),
            events: Arc::clone(relay.events()),
            peers: PeerGuard::new(node.relay.with(peer_limits), backend),
            authors: PeerGuard::new(node.relay.with(author_limits), authors),
        }
    }

    /// Applies the limits of every new document; never returns.
    pub(super) async fn follow_document(self) {
        let mut changes = self.node.relay.subscribe();
        loop {
            self.peers.replace(self.node.relay.with(peer_limits));
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
        if self.peers.admit(PeerId::Node(&peer)).await.is_err() {
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
