//! The Nostr relay: `/relay`, over WebSocket.
//!
//! It implements NIP-01 (`EVENT`, `REQ`, `CLOSE`) for topics, with NIP-09, NIP-40 and NIP-70,
//! NIP-42 (`AUTH`) and NIP-11. Every frame is counted once its first word is known, before the rest
//! of it is parsed.
//!
//! | module | contents |
//! |---|---|
//! | `upgrade` | admission and upgrade of connections |
//! | `information` | the relay information document |
//! | `connection` | one client's connection |
//! | `fragments` | counts the frames of a message |
//! | `frame`, `reply`, `event_frame` | messages of clients and of the relay |
//! | `output` | bounds the events that clients have not read yet |
//! | `event`, `filter` | events and filters, within bounds |
//! | `address` | addresses at which newer events replace older ones |
//! | `events` | stored events, and the broadcast of new ones |
//! | `subscriptions` | subscriptions of one client |
//! | `subscription_budget` | bounds the memory of all clients' subscriptions |
//! | `footprint` | estimates of memory |
//! | `challenge`, `auth_deadline` | authentication, and the time for it |
//! | `refusals` | bounds the answers to denied frames |
//! | `limits` | the guards' limits by the document in force |

pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod limits;
pub(crate) mod second;

mod address;
mod auth_deadline;
mod challenge;
mod connection;
mod event_frame;
mod filter;
mod footprint;
mod fragments;
mod frame;
pub(crate) mod information;
mod output;
mod refusals;
mod reply;
#[cfg(test)]
mod samples;
mod subscription_budget;
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
    limits::{MAX_CONNECTIONS, websocket_limits},
    output::OutputBudget,
    subscription_budget::SubscriptionBudget,
};
use crate::{
    Node,
    metrics::{Kind, Reason},
};

/// Name of the service in metrics.
pub(crate) const SERVICE: &str = "relay";

/// Bounds of the stored events.
const CAPACITY: Capacity = Capacity { max_events: 50_000, max_bytes: 128 << 20 };

/// Bounds of all clients together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of connections.
    pub max_connections: u32,
    /// Maximum number of bytes of events that are being sent. A client that does not read is
    /// disconnected when others need them.
    pub max_pending_bytes: u32,
    /// Maximum memory of subscriptions, in bytes. Beyond it, new ones are refused.
    pub max_subscription_bytes: u32,
}

/// The relay of a running node. Clones share it.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    node: Arc<Node>,
    guard: WebSocketGuard,
    events: Arc<Events>,
    output: OutputBudget,
    subscription_budget: SubscriptionBudget,
    url: RelayUrl,
    timing: Timing,
    max_connections: u32,
}

/// The relay cannot be built.
#[derive(Debug, Error)]
#[error("CN_PUBLIC_URL: {0:?} is not a relay URL: expected one such as wss://node.example/relay")]
pub struct UrlError(String);

// === impl Bounds ===

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_connections: MAX_CONNECTIONS,
            max_pending_bytes: 64 << 20,
            max_subscription_bytes: 128 << 20,
        }
    }
}

// === impl Relay ===

impl Relay {
    /// Builds the relay of `node`, which listens on `listen`.
    pub fn new(
        node: &Arc<Node>,
        listen: SocketAddr,
        timing: Timing,
        bounds: Bounds,
    ) -> Result<Self, UrlError> {
        let named = node.config.public_url.clone();
        let scheme = if node.config.tls.is_some() { "wss" } else { "ws" };
        let url = named.unwrap_or_else(|| format!("{scheme}://{listen}/relay"));
        let Bounds { max_connections, max_pending_bytes, max_subscription_bytes } = bounds;
        let limits = node.relay.with(|document| websocket_limits(document, max_connections));
        let pending = node.metrics.ws_pending_bytes.clone();
        let subscribed = node.metrics.ws_subscription_bytes.clone();
        Ok(Self(Arc::new(Inner {
            node: Arc::clone(node),
            guard: WebSocketGuard::new(limits, node.guards.clone()),
            events: Arc::new(Events::new(CAPACITY)),
            output: OutputBudget::new(max_pending_bytes, pending),
            subscription_budget: SubscriptionBudget::new(max_subscription_bytes, subscribed),
            url: RelayUrl::parse(&url).map_err(|_| UrlError(url))?,
            timing,
            max_connections,
        })))
    }

    /// Its routes, with a guard of their own. They need the address of the socket as
    /// [`ConnectInfo<SocketAddr>`](axum::extract::ConnectInfo), from which
    /// [`Config::proxies`](crate::Config::proxies) finds the client.
    pub fn router(&self) -> Router {
        Router::new().route("/relay", get(upgrade::upgrade)).with_state(self.clone())
    }

    /// Applies the limits of every new document; never returns.
    pub async fn follow_document(self) {
        let mut changes = self.0.node.relay.subscribe();
        loop {
            let max = self.0.max_connections;
            let limits = self.0.node.relay.with(|document| websocket_limits(document, max));
            self.0.guard.replace(limits);
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// URL for clients, which logins are signed for.
    pub(crate) fn url(&self) -> &RelayUrl {
        &self.0.url
    }

    /// Stored events, and the broadcast of new ones.
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
