//! The guards' limits by the document in force.

use headgate_guard::{
    Allowance, Escalation, InFlightLimits, MessageKind, PeerLimits, WebSocketLimits,
};

use crate::documents::{PenaltySettings, RelayDocument};

/// Maximum number of connections of all clients together.
pub(super) const MAX_CONNECTIONS: u32 = 10_000;

/// Limits of clients, of which at most `max_connections` are connected.
pub(crate) fn websocket_limits(document: &RelayDocument, max_connections: u32) -> WebSocketLimits {
    let rates = &document.rate_limit.ws;
    let per_address = u32::try_from(rates.concurrent_by_ip).unwrap_or(u32::MAX);
    let (events, events_by_pubkey) = rates.events();
    let (reqs, reqs_by_pubkey) = rates.reqs();
    let limits = WebSocketLimits::new(InFlightLimits::new(per_address, max_connections))
        .enabled(document.rate_limit.enabled)
        .connections(per_minute(rates.connections()));
    let by_address = [
        (MessageKind::Event, events),
        (MessageKind::Req, reqs),
        (MessageKind::Backfill, rates.backfill_by_ip),
        // Attempts to authenticate are as limited as invalid frames.
        (MessageKind::Auth, rates.invalid_by_ip),
        (MessageKind::Invalid, rates.invalid_by_ip),
        // A client may close as many subscriptions as it may open, and send occasional pings.
        (MessageKind::Other, reqs.saturating_add(rates.invalid_by_ip)),
    ];
    let by_pubkey = [
        (MessageKind::Event, events_by_pubkey),
        (MessageKind::Req, reqs_by_pubkey),
        (MessageKind::Backfill, rates.backfill_by_pubkey),
    ];
    let limits = by_address
        .into_iter()
        .fold(limits, |limits, (kind, count)| limits.message(kind, per_minute(count)));
    let mut limits = by_pubkey
        .into_iter()
        .fold(limits, |limits, (kind, count)| limits.message_by_subject(kind, per_minute(count)));
    limits.escalation = escalation(document);
    limits
}

/// Limits of peers.
pub(crate) fn peer_limits(document: &RelayDocument) -> PeerLimits {
    let rates = &document.rate_limit.gossip;
    let limits = PeerLimits::new(per_minute(rates.per_peer()), per_minute(rates.global));
    let escalation = escalation(document);
    PeerLimits { enabled: document.rate_limit.enabled, escalation, ..limits }
}

/// Limits of peers that are not configured, by address, besides those of all peers. Half of what all
/// peers may send is left for configured ones, if there are any.
pub(crate) fn other_peer_limits(
    document: &RelayDocument,
    has_configured_peers: bool,
) -> PeerLimits {
    let global = document.rate_limit.gossip.global;
    let part = if has_configured_peers { global.div_ceil(2) } else { global };
    PeerLimits { global: Some(per_minute(part)), ..peer_limits(document) }
}

/// Limits of one author over gossip, whichever peers deliver its events.
pub(crate) fn author_limits(document: &RelayDocument) -> PeerLimits {
    let (_, by_pubkey) = document.rate_limit.ws.events();
    PeerLimits {
        enabled: document.rate_limit.enabled,
        per_peer: Some(per_minute(by_pubkey)),
        global: None,
        escalation: escalation(document),
    }
}

fn per_minute(count: u64) -> Allowance {
    // The document's numbers are valid limits; an invalid one would admit nothing.
    Allowance::per_minute(count)
        .unwrap_or_else(|_| Allowance::nothing(std::time::Duration::from_secs(60)))
}

fn escalation(document: &RelayDocument) -> Option<Escalation> {
    document.rate_limit.penalty.and_then(PenaltySettings::escalation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(allowance: Option<&Allowance>) -> u64 {
        allowance.and_then(Allowance::limit).map_or(0, headgate::Limit::capacity)
    }

    #[test]
    fn each_kind_has_its_own_number() {
        let mut document = RelayDocument::default();
        document.rate_limit.ws.event_by_pubkey = Some(7);
        let limits = websocket_limits(&document, MAX_CONNECTIONS);
        let of = |kind| {
            let limits = limits.of(kind);
            (limit_of(limits.by_address.as_ref()), limit_of(limits.by_subject.as_ref()))
        };
        assert_eq!(of(MessageKind::Event), (120, 7));
        assert_eq!(of(MessageKind::Req), (60, 60));
        assert_eq!(of(MessageKind::Backfill), (20, 20));
        assert_eq!(of(MessageKind::Auth), (30, 0));
        assert_eq!(of(MessageKind::Invalid), (30, 0));
        assert_eq!(limit_of(limits.connections.as_ref()), 30);
        assert_eq!(limits.concurrent.per_key, 20);
        assert!(limits.enabled);

        let peers = peer_limits(&document);
        assert_eq!(limit_of(peers.per_peer.as_ref()), 600);
        assert_eq!(limit_of(peers.global.as_ref()), 6_000);
        for (has_configured_peers, part) in [(true, 3_000), (false, 6_000)] {
            let others = other_peer_limits(&document, has_configured_peers);
            assert_eq!(limit_of(others.per_peer.as_ref()), 600);
            assert_eq!(limit_of(others.global.as_ref()), part);
        }
        let authors = author_limits(&document);
        assert_eq!((limit_of(authors.per_peer.as_ref()), authors.global), (7, None));
    }

    #[test]
    fn limits_can_be_switched_off() {
        let mut document = RelayDocument::default();
        document.rate_limit.enabled = false;
        assert!(!websocket_limits(&document, MAX_CONNECTIONS).enabled);
        assert!(!peer_limits(&document).enabled);
        assert!(!other_peer_limits(&document, true).enabled);
        assert!(!author_limits(&document).enabled);
    }
}
