//! Peers that the operator denies, by their id or by an address.

use std::{fmt, pin::pin, sync::Arc};

use futures_util::StreamExt as _;
use iroh::{
    EndpointAddr, TransportAddr,
    endpoint::{
        AfterHandshakeOutcome, BeforeConnectOutcome, Connection, EndpointHooks, PathEventStream,
        VarInt, WeakConnectionHandle,
    },
};

use crate::{
    Node,
    metrics::{Kind, Reason},
    relay::SERVICE,
};

/// Error code of a connection that is closed because the operator denies the peer.
const DENIED: VarInt = VarInt::from_u32(2);
const DENIED_REASON: &[u8] = b"denied";

/// Refuses connections to and from denied peers, and closes those of peers that are denied later.
pub(super) struct DenyHook {
    node: Arc<Node>,
}

// === impl DenyHook ===

impl DenyHook {
    pub(super) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::clone(node) }
    }
}

impl fmt::Debug for DenyHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenyHook").finish_non_exhaustive()
    }
}

impl EndpointHooks for DenyHook {
    async fn before_connect(&self, remote: &EndpointAddr, _alpn: &[u8]) -> BeforeConnectOutcome {
        // Its addresses may not be known yet; they are checked after the handshake.
        if self.node.denies_key(&remote.id.to_string()) {
            count(&self.node);
            return BeforeConnectOutcome::Reject;
        }
        BeforeConnectOutcome::Accept
    }

    async fn after_handshake(&self, connection: &Connection) -> AfterHandshakeOutcome {
        if is_denied(&self.node, connection) {
            count(&self.node);
            return AfterHandshakeOutcome::Reject {
                error_code: DENIED,
                reason: DENIED_REASON.to_vec(),
            };
        }
        // It ends with the connection.
        let paths = connection.path_events();
        tokio::spawn(watch(Arc::clone(&self.node), connection.weak_handle(), paths));
        AfterHandshakeOutcome::Accept
    }
}

/// Closes a connection once its peer is denied: when the list changes, or the peer uses another
/// address.
async fn watch(node: Arc<Node>, connection: WeakConnectionHandle, mut paths: PathEventStream) {
    let mut changes = node.denylist.changes();
    let mut closed = pin!(connection.closed());
    loop {
        // The list may have changed since the handshake.
        let Some(open) = connection.upgrade() else {
            return;
        };
        if is_denied(&node, &open) {
            count(&node);
            return open.close(DENIED, DENIED_REASON);
        }
        drop(open);
        tokio::select! {
            _ = &mut closed => return,
            Ok(()) = changes.changed() => {}
            Some(_) = paths.next() => {}
        }
    }
}

fn is_denied(node: &Node, connection: &Connection) -> bool {
    let denies_path = |address: &TransportAddr| match address {
        TransportAddr::Ip(address) => node.denies_address(address.ip()),
        _ => false,
    };
    node.denies_key(&connection.remote_id().to_string())
        || connection.paths().iter().any(|path| denies_path(path.remote_addr()))
}

fn count(node: &Node) {
    node.metrics.reject_kind(SERVICE, Reason::Denied, Kind::Connection);
}
