//! What peers send over gossip.

use std::{io, sync::Arc};

use crate::Node;

/// The gossip of a running node.
#[derive(Debug)]
pub struct Gossip;

/// Joins the gossip, if [`Config::iroh_bind`](crate::Config::iroh_bind) says where.
#[expect(clippy::unused_async, reason = "joining waits for the network")]
pub async fn start(_node: &Arc<Node>) -> io::Result<Gossip> {
    Ok(Gossip)
}

impl Gossip {
    /// Leaves.
    #[expect(clippy::unused_async, reason = "leaving waits for the network")]
    pub async fn stop(self) {}
}
