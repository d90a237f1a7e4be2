//! Which machine asks.

use std::net::SocketAddr;

use axum::http::request::Parts;

/// The other end of the connection that a request came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) SocketAddr);

impl Peer {
    /// Where a request that was routed came from.
    pub(super) fn of(head: &Parts) -> Option<Self> {
        head.extensions.get().copied()
    }
}
