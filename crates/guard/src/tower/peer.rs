//! Peer address of a connection.

use std::net::{IpAddr, SocketAddr};

use http::Extensions;

/// Peer address of a connection, for servers without an extension of their own: insert it into the
/// extensions of each request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl PeerAddress {
    /// Returns the peer address that a server has left in the extensions of a request: axum's
    /// `ConnectInfo<SocketAddr>`, or else a `PeerAddress`.
    pub fn find(extensions: &Extensions) -> Option<IpAddr> {
        default(extensions)
    }
}

/// Function that finds the peer address in the extensions of a request.
pub(super) enum FindPeer {
    Default,
    By(Box<Find>),
}

type Find = dyn Fn(&Extensions) -> Option<IpAddr> + Send + Sync;

impl FindPeer {
    pub(super) const fn is_default(&self) -> bool {
        matches!(self, Self::Default)
    }

    #[inline]
    pub(super) fn find(&self, extensions: &Extensions) -> Option<IpAddr> {
        match self {
            Self::Default => default(extensions),
            Self::By(find) => find(extensions),
        }
    }
}

/// axum's `ConnectInfo`, or else [`PeerAddress`].
#[inline]
pub(super) fn default(extensions: &Extensions) -> Option<IpAddr> {
    #[cfg(feature = "axum")]
    if let Some(info) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(info.0.ip());
    }
    extensions.get::<PeerAddress>().map(|peer| peer.0.ip())
}

/// Omits the address.
impl std::fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PeerAddress(..)")
    }
}
