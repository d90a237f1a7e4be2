//! The node's own endpoint.

use std::{io, net::SocketAddr, sync::Arc};

use iroh::{
    Endpoint, RelayMode, SecretKey,
    address_lookup::memory::MemoryLookup,
    endpoint::{PortmapperConfig, presets},
};

use super::{addresses::PeerAddresses, denied::DenyHook};
use crate::Node;

/// Binds to `address` only. There is no discovery: the node knows the peers of its configuration,
/// and those that find it. `peers` has the addresses of those that are connected.
pub(super) async fn bind(
    node: &Arc<Node>,
    address: SocketAddr,
    peers: PeerAddresses,
) -> io::Result<Endpoint> {
    let config = &node.config;
    let known = MemoryLookup::from_endpoint_info(config.peers.iter().map(|peer| peer.0.clone()));
    let mut builder = Endpoint::builder(presets::Minimal)
        .relay_mode(RelayMode::Disabled)
        .portmapper_config(PortmapperConfig::Disabled)
        .clear_ip_transports()
        .clear_address_lookup()
        .address_lookup(known)
        .hooks(DenyHook::new(node))
        .hooks(peers)
        .bind_addr(address)
        .map_err(io::Error::other)?;
    if let Some(secret) = &config.iroh_secret {
        builder = builder.secret_key(SecretKey::from_bytes(secret.bytes()));
    }
    builder.bind().await.map_err(io::Error::other)
}
