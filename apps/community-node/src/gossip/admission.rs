//! Limits the connections of peers.

use std::{fmt, sync::Arc};

use headgate_guard::{InFlight, InFlightLimits};
use iroh::{
    endpoint::{Connection, VarInt},
    protocol::{AcceptError, ProtocolHandler},
};
use iroh_gossip::net::Gossip as Swarm;

/// Maximum number of connections of one peer, and of all: new ids cost nothing.
const LIMITS: InFlightLimits = InFlightLimits::new(4, 256);

/// Error code of a connection that is refused for lack of room.
const BUSY: VarInt = VarInt::from_u32(1);

/// Accepts connections of peers, within limits.
#[derive(Clone)]
pub(super) struct PeerAdmission {
    swarm: Swarm,
    open: Arc<InFlight>,
}

// === impl PeerAdmission ===

impl PeerAdmission {
    pub(super) fn new(swarm: Swarm) -> Self {
        Self { swarm, open: InFlight::new() }
    }
}

impl fmt::Debug for PeerAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerAdmission").finish_non_exhaustive()
    }
}

impl ProtocolHandler for PeerAdmission {
    async fn accept(&self, connection: Connection) -> Result<(), AcceptError> {
        let Ok(_permit) = self.open.acquire(connection.remote_id(), LIMITS) else {
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
