//! Id and address of another node.

use std::{net::SocketAddr, str::FromStr};

use iroh::{EndpointAddr, EndpointId};
use thiserror::Error;

/// Id and address of another node: `id@address:port`.
///
/// ```
/// use headgate_community_node::gossip::Peer;
///
/// let id = "ae58ff8833241ac82d6ff7611046ed67b5072d142c588d0063e942d9a75502b6";
/// assert!(format!("{id}@192.0.2.1:11204").parse::<Peer>().is_ok());
/// assert!(id.parse::<Peer>().is_err(), "addresses are not looked up");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(pub EndpointAddr);

/// Invalid text of a peer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} names no peer: expected its id and where it is, as in id@192.0.2.1:11204")]
pub struct PeerError(String);

// === impl Peer ===

impl Peer {
    /// Its id.
    pub fn id(&self) -> EndpointId {
        self.0.id
    }
}

impl FromStr for Peer {
    type Err = PeerError;

    fn from_str(text: &str) -> Result<Self, PeerError> {
        let error = || PeerError(text.to_owned());
        let (id, address) = text.split_once('@').ok_or_else(error)?;
        let id: EndpointId = id.parse().map_err(|_| error())?;
        let address: SocketAddr = address.parse().map_err(|_| error())?;
        Ok(Self(EndpointAddr::new(id).with_ip_addr(address)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_has_an_id_and_a_place() {
        let id = iroh::SecretKey::from_bytes(&[7; 32]).public();
        let peer: Peer = format!("{id}@127.0.0.1:7000").parse().unwrap();
        assert_eq!(peer.id(), id);
        assert_eq!(peer.0.ip_addrs().collect::<Vec<_>>(), [&"127.0.0.1:7000".parse().unwrap()]);
        for bad in [
            "",
            "@127.0.0.1:7000",
            &format!("{id}@127.0.0.1"),
            &format!("{id}@host:1"),
            "x@127.0.0.1:1",
        ] {
            assert_eq!(bad.parse::<Peer>(), Err(PeerError(bad.to_owned())));
        }
    }
}
