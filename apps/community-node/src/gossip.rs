//! What peers send over gossip, and what they are told.
//!
//! The node follows the topics that it is configured with. An event that one of its own clients publishes goes
//! to all peers of its topics; one that a peer delivers goes to the node's clients. The guard is asked before a
//! message is read: within what its deliverer may send, and all together. Whatever is too much is dropped, and nobody
//! is answered.
//!
//! Whoever delivers a message need not have written it, so an honest neighbour pays for the spam that it
//! passes on. Who wrote an event is only known once it was verified; then its author is counted, too, by a
//! budget of its own, however many neighbours deliver it.
//!
//! | module | what it owns |
//! |---|---|
//! | `peer` | [`Peer`]: another node, and where it is |
//! | `endpoint` | the node's own place in the network, and nothing beyond it |
//! | `denied` | closes connections to and from peers that the operator denies |
//! | `door` | how many connections peers may have |
//! | `topics` | which topics are followed |
//! | `topic` | one topic: what comes, and what goes out |
//! | `ingest` | what becomes of a message |

mod denied;
mod door;
mod endpoint;
mod ingest;
mod peer;
mod topic;
mod topics;

use std::{io, sync::Arc};

use iroh::{EndpointAddr, protocol::Router};
use iroh_gossip::net::Gossip as Swarm;
use tokio::task::JoinSet;
use tracing::info;

pub use self::peer::{Peer, PeerError};
use self::{door::Door, ingest::Ingest, topics::Topics};
use crate::{Node, relay::Relay};

/// Log filter of a program that gossips: the libraries below log the ids and addresses of peers, which
/// do not belong in a log.
pub const LOG_FILTER: &str = "info,iroh=off,iroh_dns=off,iroh_gossip=off,iroh_relay=off,\
    netwatch=off,noq=off,noq_proto=off,noq_udp=off";

/// Most bytes of a message, and of an event that is sent to peers.
const MAX_MESSAGE_BYTES: usize = 65_536;

/// The gossip of a running node.
#[derive(Debug)]
pub struct Gossip(Option<Running>);

#[derive(Debug)]
struct Running {
    router: Router,
    /// Stops with the rest when it is dropped.
    background: JoinSet<()>,
}

/// Joins the gossip, if [`Config::iroh_bind`](crate::Config::iroh_bind) says where.
pub async fn start(node: &Arc<Node>, relay: &Relay) -> io::Result<Gossip> {
    let Some(bind) = node.config.iroh_bind else {
        return Ok(Gossip(None));
    };
    let endpoint = endpoint::bind(node, bind).await?;
    info!("Gossiping as {} at {:?}", endpoint.id(), endpoint.bound_sockets());
    let swarm = Swarm::builder().max_message_size(MAX_MESSAGE_BYTES).spawn(endpoint.clone());
    let door = Door::new(swarm.clone());
    let router = Router::builder(endpoint).accept(iroh_gossip::ALPN, door).spawn();
    let ingest = Ingest::new(node, relay);
    let mut background = JoinSet::new();
    background.spawn(ingest.clone().follow_document());
    background.spawn(Topics::new(swarm, ingest).run());
    Ok(Gossip(Some(Running { router, background })))
}

// === impl Gossip ===

impl Gossip {
    /// Where peers find the node; nowhere if it does not gossip.
    pub fn address(&self) -> Option<EndpointAddr> {
        self.0.as_ref().map(|running| running.router.endpoint().addr())
    }

    /// Leaves.
    pub async fn stop(self) {
        if let Some(mut running) = self.0 {
            running.background.shutdown().await;
            // It ends in any case; whether peers heard of it is theirs to find out.
            let _ = running.router.shutdown().await;
        }
    }
}
