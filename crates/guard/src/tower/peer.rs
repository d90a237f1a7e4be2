//! Where a connection comes from.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;

/// Where a connection comes from, for servers that have no word of their own for it: whoever
/// accepts connections puts it into the extensions of their requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// Finds the peer among what the program knows of a request.
pub(super) type FindPeer = dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync;

/// Where axum keeps it, or else [`PeerAddress`].
pub(super) fn usual(extensions: &Extensions) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    if let Some(info) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(info.0.ip());
    }
    extensions.get::<PeerAddress>().map(|peer| peer.0.ip())
}

/// Does not say where.
impl std::fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerAddress(..)")
    }
}
