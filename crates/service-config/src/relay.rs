//! The relay's document.

use crate::{
    auth::AuthSettings,
    document::Document,
    penalty::PenaltySettings,
    reader::Reader,
    source::Doubt,
    user_api::{PER_MINUTE, enabled},
};

/// What the relay runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayDocument {
    /// Whether clients must say who they are.
    pub auth: AuthSettings,
    /// How large an event may be.
    pub limits: EventLimits,
    /// How often clients and peers may do what.
    pub rate_limit: RelayRateLimit,
    /// The most topics that the node follows at a time.
    pub max_concurrent_topics: u64,
}

/// How large an event may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// The most bytes of its JSON.
    pub max_event_bytes: u64,
    /// The most tags.
    pub max_tags: u64,
}

/// How often clients and peers may do what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayRateLimit {
    /// Whether anybody is limited at all.
    pub enabled: bool,
    /// Over WebSocket.
    pub ws: WsRates,
    /// Over gossip.
    pub gossip: GossipRates,
    /// Penalties for those who are denied again and again, if there are some.
    pub penalty: Option<PenaltySettings>,
}

/// What clients may do in a minute. Each kind has a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WsRates {
    /// Events, where neither of the two below says something else.
    pub events_per_minute: u64,
    /// Subscriptions, where neither of the two below says something else.
    pub reqs_per_minute: u64,
    /// New connections of an address, where `conn_by_ip` does not say something else.
    pub conns_per_minute: u64,
    /// New connections of an address.
    pub conn_by_ip: Option<u64>,
    /// Connections of an address that are open at a time.
    pub concurrent_by_ip: u64,
    /// Subscriptions of an address.
    pub req_by_ip: Option<u64>,
    /// Subscriptions of a public key.
    pub req_by_pubkey: Option<u64>,
    /// Events of an address.
    pub event_by_ip: Option<u64>,
    /// Events of a public key.
    pub event_by_pubkey: Option<u64>,
    /// Subscriptions of an address that ask for what is kept: they cost the database.
    pub backfill_by_ip: u64,
    /// Subscriptions of a public key that ask for what is kept.
    pub backfill_by_pubkey: u64,
    /// Frames of an address that make no sense, and other frames that nobody else counts.
    pub invalid_by_ip: u64,
}

/// What peers may send in a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GossipRates {
    /// Messages of one peer, where `iroh.by_peer` does not say something else.
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
        // How long events are kept is the storage's business.
        reader.anything("retention");
        Self {
            auth: reader.section("auth", |auth| AuthSettings::read(auth, true)),
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

    fn safe(doubt: &Doubt) -> Self {
        Self {
            auth: doubt.auth(),
            limits: EventLimits { max_event_bytes: 16_384, max_tags: 100 },
            rate_limit: RelayRateLimit::SAFE,
            max_concurrent_topics: 25,
        }
    }
}

impl Default for RelayDocument {
    fn default() -> Self {
        Self::read(&mut Reader::new(None, String::new()))
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

    /// New connections of an address in a minute.
    pub fn connections(&self) -> u64 {
        self.conn_by_ip.unwrap_or(self.conns_per_minute)
    }

    /// Subscriptions in a minute: of an address, and of a public key.
    pub fn reqs(&self) -> (u64, u64) {
        let usual = self.reqs_per_minute;
        (self.req_by_ip.unwrap_or(usual), self.req_by_pubkey.unwrap_or(usual))
    }

    /// Events in a minute: of an address, and of a public key.
    pub fn events(&self) -> (u64, u64) {
        let usual = self.events_per_minute;
        (self.event_by_ip.unwrap_or(usual), self.event_by_pubkey.unwrap_or(usual))
    }
}

// === impl GossipRates ===

impl GossipRates {
    /// Messages of one peer in a minute.
    pub fn per_peer(&self) -> u64 {
        self.by_peer.unwrap_or(self.msgs_per_minute)
    }
}
