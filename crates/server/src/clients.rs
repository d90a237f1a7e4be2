//! Which machines count as one client.

use std::net::IpAddr;

use axum::http::HeaderMap;
use headgate_guard::{AddressKey, Ipv6Prefix, TrustedProxies};

/// How clients are told apart.
#[derive(Debug)]
pub(crate) struct Clients {
    /// Proxies that may say for which client they ask.
    pub(crate) proxies: TrustedProxies,
    /// Length of the IPv6 networks that count as one client.
    pub(crate) ipv6: Ipv6Prefix,
}

impl Clients {
    /// The key of the client of a request that came from `peer`: `ip:` and its address, which a proxy's
    /// header says only if the proxy is trusted.
    pub(crate) fn key(&self, peer: IpAddr, headers: &HeaderMap) -> AddressKey {
        AddressKey::grouped("ip:", self.proxies.client(peer, headers), self.ipv6)
    }
}
