//! How many connections peers may have.

use std::{fmt, sync::Arc};

use headgate_guard::{InFlight, InFlightLimits};
use iroh::{
    endpoint::{Connection, VarInt},
    protocol::{AcceptError, ProtocolHandler},
};
use iroh_gossip::net::Gossip as Swarm;

/// How many connections one peer may have, and all together: anybody can make itself a new id.
const LIMITS: InFlightLimits = InFlightLimits::new(4, 256);

/// What a peer is told that has to stay outside.
const BUSY: VarInt = VarInt::from_u32(1);

/// Lets peers in, as many as there is room for.
#[derive(Clone)]
pub(super) struct Door {
    swarm: Swarm,
    open: Arc<InFlight>,
}

// === impl Door ===

impl Door {
    pub(super) fn new(swarm: Swarm) -> Self {
        Self { swarm, open: InFlight::new() }
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl ProtocolHandler for Door {
    async fn accept(&self, connection: Connection) -> Result<(), AcceptError> {
        let Ok(_permit) = self.open.acquire(connection.remote_id(), LIMITS) else {
            connection.close(BUSY, b"busy");
            return Ok(());
        };
        // It must not stay open because somebody waits for its end.
        let closed = connection.weak_handle().closed();
        self.swarm.handle_connection(connection).await.map_err(AcceptError::from_err)?;
        closed.await;
        Ok(())
    }

    async fn shutdown(&self) {
        ProtocolHandler::shutdown(&self.swarm).await;
    }
}
