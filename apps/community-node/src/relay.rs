//! The Nostr relay: `/relay`, over WebSocket.
//!
//! It speaks NIP-01 (`EVENT`, `REQ`, `CLOSE`) about topics, with NIP-09, NIP-40 and NIP-70, NIP-42
//! (`AUTH`) and NIP-11. Every frame is counted once its first word is known, and before anything else
//! of it is read.
//!
//! | module | what it owns |
//! |---|---|
//! | `upgrade` | the way in: who may open a connection |
//! | `information` | what the relay says of itself |
//! | `connection` | one client: what it sends, and what it is answered |
//! | `fragments` | how many frames a message came in |
//! | `frame`, `reply` | what is said on the wire |
//! | `event`, `filter` | what may be published and asked for, within bounds |
//! | `address` | where newer events replace older ones |
//! | `events` | what is kept, and who hears of what is new |
//! | `subscriptions` | what one client wants to hear of |
//! | `footprint` | what all that takes in memory |
//! | `challenge`, `patience` | who the client is, and how long it may be nobody |
//! | `refusals` | how often it is told to wait |
//! | `limits` | what the document in force means to the guards |

pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod limits;
pub(crate) mod second;

mod address;
mod challenge;
mod connection;
mod filter;
mod footprint;
mod fragments;
mod frame;
pub(crate) mod information;
mod patience;
mod refusals;
mod reply;
#[cfg(test)]
mod samples;
mod subscriptions;
mod timing;
mod upgrade;

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, routing::get};
use headgate_guard::WebSocketGuard;
use nostr::types::RelayUrl;
use thiserror::Error;

pub use self::timing::Timing;
use self::{
    events::{Capacity, Events},
    limits::websocket_limits,
};
use crate::{
    Node,
    metrics::{Kind, Reason},
};

/// The service that events are counted under.
pub(crate) const SERVICE: &str = "relay";

/// How much is kept of the events that came.
const CAPACITY: Capacity = Capacity { max_events: 50_000, max_bytes: 128 << 20 };

/// The relay of a running node. Clones are the same relay.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    node: Arc<Node>,
    guard: WebSocketGuard,
    events: Arc<Events>,
    url: RelayUrl,
    timing: Timing,
}

/// Why there is no relay.
#[derive(Debug, Error)]
#[error("CN_PUBLIC_URL: {0:?} is no URL of a relay: expected one such as wss://node.example/relay")]
pub struct UrlError(String);

// === impl Relay ===

impl Relay {
    /// The relay of `node`, which listens at `listen`.
    pub fn new(node: &Arc<Node>, listen: SocketAddr, timing: Timing) -> Result<Self, UrlError> {
        let named = node.config.public_url.clone();
        let url = named.unwrap_or_else(|| format!("ws://{listen}/relay"));
        let limits = node.relay.with(websocket_limits);
        Ok(Self(Arc::new(Inner {
            node: Arc::clone(node),
            guard: WebSocketGuard::new(limits, node.guards.clone()),
            events: Arc::new(Events::new(CAPACITY)),
            url: RelayUrl::parse(&url).map_err(|_| UrlError(url))?,
            timing,
        })))
    }

    /// Its routes: whoever opens a connection is limited by their own guard. They get the address of the client's socket as
    /// [`ConnectInfo<SocketAddr>`](axum::extract::ConnectInfo), and who that stands for from
    /// [`Config::proxies`](crate::Config::proxies).
    pub fn router(&self) -> Router {
        Router::new().route("/relay", get(upgrade::upgrade)).with_state(self.clone())
    }

    /// Puts the limits of every new document in force, for ever.
    pub async fn follow_document(self) {
        let mut changes = self.0.node.relay.subscribe();
        loop {
            self.0.guard.replace(self.0.node.relay.with(websocket_limits));
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// What clients call it, and sign logins for.
    pub(crate) fn url(&self) -> &RelayUrl {
        &self.0.url
    }

    /// What is kept, and who hears of what is new.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.0.events
    }
}

// === impl Inner ===

impl Inner {
    fn reject(&self, reason: Reason, kind: Kind) {
        self.node.metrics.reject_kind(SERVICE, reason, kind);
    }
}
