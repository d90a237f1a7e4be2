//! The relay's document.

use headgate_service_config::{Document, LoadError, Reader, document};

use super::{AuthSettings, PER_MINUTE, PenaltySettings, enabled};

/// Settings of the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayDocument {
    /// Authentication of clients.
    pub auth: AuthSettings,
    /// Size limits of events.
    pub limits: EventLimits,
    /// Rate limits of clients and peers.
    pub rate_limit: RelayRateLimit,
    /// Maximum number of topics that the node follows at a time.
    pub max_concurrent_topics: u64,
}

/// Size limits of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// Maximum size of an event's JSON, in bytes.
    pub max_event_bytes: u64,
    /// Maximum number of tags of an event.
    pub max_tags: u64,
}

/// Rate limits of clients and peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayRateLimit {
    /// True if limits are in force.
    pub enabled: bool,
    /// Limits of WebSocket clients.
    pub ws: WsRates,
    /// Limits of gossip peers.
    pub gossip: GossipRates,
    /// Penalties of clients that exceed their limits repeatedly, if any.
    pub penalty: Option<PenaltySettings>,
}

/// Limits of clients per minute. Each kind of frame has a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WsRates {
    /// Events; default of `event_by_ip` and `event_by_pubkey`.
    pub events_per_minute: u64,
    /// Subscriptions; default of `req_by_ip` and `req_by_pubkey`.
    pub reqs_per_minute: u64,
    /// New connections of an address; default of `conn_by_ip`.
    pub conns_per_minute: u64,
    /// New connections of an address.
    pub conn_by_ip: Option<u64>,
    /// Open connections of an address at a time.
    pub concurrent_by_ip: u64,
    /// Subscriptions of an address.
    pub req_by_ip: Option<u64>,
    /// Subscriptions of a public key.
    pub req_by_pubkey: Option<u64>,
    /// Events of an address.
    pub event_by_ip: Option<u64>,
    /// Events of a public key.
    pub event_by_pubkey: Option<u64>,
    /// Subscriptions of an address that ask for stored events, which are more expensive.
    pub backfill_by_ip: u64,
    /// Subscriptions of a public key that ask for stored events.
    pub backfill_by_pubkey: u64,
    /// Invalid frames of an address, and frames that no other limit counts.
    pub invalid_by_ip: u64,
}

/// Limits of peers per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GossipRates {
    /// Messages of one peer; default of `iroh.by_peer`.
    pub msgs_per_minute: u64,
    /// Messages of one peer.
    pub by_peer: Option<u64>,
    /// Messages of all peers together.
    pub global: u64,
}

// === impl RelayDocument ===

impl Document for RelayDocument {
    const SERVICE: &'static str = "relay";

    fn read(reader: &mut Reader<'_>) -> Self {
        // Part of the document, but not enforced by the relay.
        reader.any("retention");
        Self {
            auth: reader.section("auth", AuthSettings::read_ws),
            limits: reader.section("limits", |limits| EventLimits {
                max_event_bytes: limits.number("max_event_bytes", 256..=1_048_576, 32_768),
                max_tags: limits.number("max_tags", 1..=10_000, 200),
            }),
            rate_limit: reader.section("rate_limit", RelayRateLimit::read),
            max_concurrent_topics: reader.section("node_subscription", |section| {
                section.number("max_concurrent_topics", 1..=10_000, 100)
            }),
        }
    }

    fn safe_defaults(error: &LoadError) -> Self {
        Self {
            auth: AuthSettings::safe_defaults(error),
            limits: EventLimits { max_event_bytes: 16_384, max_tags: 100 },
            rate_limit: RelayRateLimit::SAFE,
            max_concurrent_topics: 25,
        }
    }
}

impl Default for RelayDocument {
    fn default() -> Self {
        document::defaults()
    }
}

// === impl RelayRateLimit ===

impl RelayRateLimit {
    const SAFE: Self = Self {
        enabled: true,
        ws: WsRates {
            events_per_minute: 30,
            reqs_per_minute: 15,
            conns_per_minute: 10,
            conn_by_ip: None,
            concurrent_by_ip: 5,
            req_by_ip: None,
            req_by_pubkey: None,
            event_by_ip: None,
            event_by_pubkey: None,
            backfill_by_ip: 5,
            backfill_by_pubkey: 5,
            invalid_by_ip: 10,
        },
        gossip: GossipRates { msgs_per_minute: 150, by_peer: None, global: 1_500 },
        penalty: None,
    };

    fn read(reader: &mut Reader<'_>) -> Self {
        let enabled = enabled(reader);
        let ws = reader.section("ws", WsRates::read);
        let msgs_per_minute =
            reader.section("gossip", |gossip| gossip.number("msgs_per_minute", PER_MINUTE, 600));
        let (by_peer, global) = reader.section("iroh", |iroh| {
            let by_peer = iroh.optional_number("by_peer", PER_MINUTE);
            (by_peer, iroh.number("global", PER_MINUTE, 6_000))
        });
        let gossip = GossipRates { msgs_per_minute, by_peer, global };
        Self { enabled, ws, gossip, penalty: PenaltySettings::read(reader) }
    }
}

// === impl WsRates ===

impl WsRates {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            events_per_minute: reader.number("events_per_minute", PER_MINUTE, 120),
            reqs_per_minute: reader.number("reqs_per_minute", PER_MINUTE, 60),
            conns_per_minute: reader.number("conns_per_minute", PER_MINUTE, 30),
            conn_by_ip: reader.optional_number("conn_by_ip", PER_MINUTE),
            concurrent_by_ip: reader.number("concurrent_by_ip", 1..=100_000, 20),
            req_by_ip: reader.optional_number("req_by_ip", PER_MINUTE),
            req_by_pubkey: reader.optional_number("req_by_pubkey", PER_MINUTE),
            event_by_ip: reader.optional_number("event_by_ip", PER_MINUTE),
            event_by_pubkey: reader.optional_number("event_by_pubkey", PER_MINUTE),
            backfill_by_ip: reader.number("backfill_by_ip", PER_MINUTE, 20),
            backfill_by_pubkey: reader.number("backfill_by_pubkey", PER_MINUTE, 20),
            invalid_by_ip: reader.number("invalid_by_ip", PER_MINUTE, 30),
        }
    }

    /// New connections per minute of an address.
    pub fn connections(&self) -> u64 {
        self.conn_by_ip.unwrap_or(self.conns_per_minute)
    }

    /// Subscriptions per minute: of an address, and of a public key.
    pub fn reqs(&self) -> (u64, u64) {
        let usual = self.reqs_per_minute;
        (self.req_by_ip.unwrap_or(usual), self.req_by_pubkey.unwrap_or(usual))
    }

    /// Events per minute: of an address, and of a public key.
    pub fn events(&self) -> (u64, u64) {
        let usual = self.events_per_minute;
        (self.event_by_ip.unwrap_or(usual), self.event_by_pubkey.unwrap_or(usual))
    }
}

// === impl GossipRates ===

impl GossipRates {
    /// Messages per minute of one peer.
    pub fn per_peer(&self) -> u64 {
        self.by_peer.unwrap_or(self.msgs_per_minute)
    }
}
