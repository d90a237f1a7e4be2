//! The client that a request comes from.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, request::Parts};
use headgate_guard::{AddressKey, Ipv6Prefix, TrustedProxies};

/// The address at the other end of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Tells clients apart by their addresses.
#[derive(Debug)]
pub(super) struct Clients {
    /// Proxies whose forwarding headers are believed.
    pub(super) proxies: TrustedProxies,
    /// Length of the IPv6 networks that count as one client.
    pub(super) ipv6: Ipv6Prefix,
}

impl Peer {
    /// The peer of a request that came through the router.
    pub(super) fn of(head: &Parts) -> Option<Self> {
        head.extensions.get().copied()
    }
}

impl Clients {
    /// The key of the client of a request that came from `peer`: `ip:` and its address, taken from
    /// a forwarding header only if the proxy is trusted.
    pub(super) fn key(&self, peer: IpAddr, headers: &HeaderMap) -> AddressKey {
        AddressKey::grouped("ip:", self.proxies.client(peer, headers), self.ipv6)
    }
}
