//! Limits the connections of peers.

use std::{fmt, sync::Arc};

use iroh::{
    endpoint::{Connection, VarInt},
    protocol::{AcceptError, ProtocolHandler},
};
use iroh_gossip::net::Gossip as Swarm;

use super::{addresses::address_of, is_configured, slots::Slots};
use crate::Node;

/// Error code of a connection that is refused for lack of room.
const BUSY: VarInt = VarInt::from_u32(1);

/// Accepts connections of peers, within limits.
#[derive(Clone)]
pub(super) struct PeerAdmission {
    node: Arc<Node>,
    swarm: Swarm,
    slots: Arc<Slots>,
}

// === impl PeerAdmission ===

impl PeerAdmission {
    pub(super) fn new(node: &Arc<Node>, swarm: Swarm) -> Self {
        let slots = Arc::new(Slots::new(node.config.ipv6));
        Self { node: Arc::clone(node), swarm, slots }
    }
}

impl fmt::Debug for PeerAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerAdmission").finish_non_exhaustive()
    }
}

impl ProtocolHandler for PeerAdmission {
    async fn accept(&self, connection: Connection) -> Result<(), AcceptError> {
        let peer = connection.remote_id();
        let slot = if is_configured(&self.node, peer) {
            self.slots.of_configured(peer)
        } else {
            self.slots.of_other(peer, address_of(&connection))
        };
        let Ok(_slot) = slot else {
            connection.close(BUSY, b"busy");
            return Ok(());
        };
        // A strong reference would keep the connection open.
        let closed = connection.weak_handle().closed();
        self.swarm.handle_connection(connection).await.map_err(AcceptError::from_err)?;
        closed.await;
        Ok(())
    }

    async fn shutdown(&self) {
        ProtocolHandler::shutdown(&self.swarm).await;
    }
}
