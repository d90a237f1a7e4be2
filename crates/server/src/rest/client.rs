//! Which machine asks.

use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;

use crate::services::Services;

/// The other end of the connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

/// The address of the client.
pub(super) fn address(head: &Parts, _services: &Services) -> Option<IpAddr> {
    let Peer(peer) = head.extensions.get()?;
    Some(peer.ip())
}
