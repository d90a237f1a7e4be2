//! Which machine asks.

use std::net::SocketAddr;

use axum::http::{HeaderMap, request::Parts};
use headgate_guard::{AddressKey, TrustedProxies};

/// The other end of the connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Peer {
    /// Where a request that was routed came from.
    pub(super) fn of(head: &Parts) -> Option<Self> {
        head.extensions.get().copied()
    }

    /// The key of the client that sent a request: `ip:` and its address, which a proxy's header says only if
    /// the proxy is trusted.
    pub(super) fn client_key(self, headers: &HeaderMap, proxies: &TrustedProxies) -> AddressKey {
        AddressKey::with_prefix("ip:", proxies.client(self.0.ip(), headers))
    }
}
