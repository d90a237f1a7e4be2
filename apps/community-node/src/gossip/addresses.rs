//! Addresses of connected peers: ids cost nothing, so a peer is counted by its address, too.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use iroh::{
    EndpointId, TransportAddr,
    endpoint::{AfterHandshakeOutcome, Connection, EndpointHooks},
};

/// Addresses of the peers that are connected, whichever side opened the connection.
#[derive(Clone, Default)]
pub(super) struct PeerAddresses(Arc<Mutex<HashMap<EndpointId, Connected>>>);

struct Connected {
    /// Address of the last connection.
    address: IpAddr,
    connections: usize,
}

/// Returns the address of the peer.
pub(super) fn address_of(connection: &Connection) -> Option<IpAddr> {
    connection.paths().iter().find_map(|path| match path.remote_addr() {
        TransportAddr::Ip(address) => Some(address.ip()),
        _ => None,
    })
}

// === impl PeerAddresses ===

impl PeerAddresses {
    /// Returns the address of a connected peer.
    pub(super) fn of(&self, peer: EndpointId) -> Option<IpAddr> {
        self.peers().get(&peer).map(|connected| connected.address)
    }

    fn connected(&self, peer: EndpointId, address: IpAddr) {
        let mut peers = self.peers();
        let connected = peers.entry(peer).or_insert(Connected { address, connections: 0 });
        connected.address = address;
        connected.connections += 1;
    }

    fn disconnected(&self, peer: EndpointId) {
        if let Entry::Occupied(mut connected) = self.peers().entry(peer) {
            connected.get_mut().connections -= 1;
            if connected.get().connections == 0 {
                connected.remove();
            }
        }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<EndpointId, Connected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EndpointHooks for PeerAddresses {
    async fn after_handshake(&self, connection: &Connection) -> AfterHandshakeOutcome {
        if let Some(address) = address_of(connection) {
            let (peers, peer) = (self.clone(), connection.remote_id());
            let closed = connection.weak_handle().closed();
            peers.connected(peer, address);
            tokio::spawn(async move {
                closed.await;
                peers.disconnected(peer);
            });
        }
        AfterHandshakeOutcome::Accept
    }
}

/// Omits ids and addresses.
impl fmt::Debug for PeerAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerAddresses").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use iroh::SecretKey;

    use super::*;

    #[test]
    fn an_address_is_known_until_the_last_connection_of_its_peer_is_closed() {
        let peers = PeerAddresses::default();
        let peer = SecretKey::from_bytes(&[7; 32]).public();
        let [first, last] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        peers.connected(peer, first);
        peers.connected(peer, last);
        assert_eq!(peers.of(peer), Some(last));
        peers.disconnected(peer);
        assert_eq!(peers.of(peer), Some(last));
        peers.disconnected(peer);
        peers.disconnected(peer);
        assert!(peers.of(peer).is_none() && peers.peers().is_empty());
    }
}
