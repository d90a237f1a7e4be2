//! Which machine asks.

use std::net::SocketAddr;

use axum::http::request::Parts;
use headgate_guard::AddressKey;

use crate::services::Services;

/// The other end of the connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// The key of the client that sent a request: `ip:` and its address, which a proxy's header says only if the
/// proxy is trusted.
pub(super) fn key(head: &Parts, services: &Services) -> Option<AddressKey> {
    let Peer(peer) = head.extensions.get()?;
    let client = services.proxies.client(peer.ip(), &head.headers);
    Some(AddressKey::with_prefix("ip:", client))
}
