//! Gossip with other nodes.
//!
//! The node follows the topics that it is configured with. Events of its own clients go to the
//! peers of their topics; events of peers go to its clients. A message is charged to the peer that
//! delivers it, and to all peers together, before it is parsed. Excess messages are dropped without
//! an answer. Ids are free, so a peer that is not configured is first charged by its address, and all
//! of them together have a part of the budget of all peers.
//!
//! The peer that delivers a message need not be its author, so an honest neighbour is charged for
//! the spam that it forwards. The author is known once the event is verified, and is then charged,
//! too, by a budget of its own, however many neighbours deliver the event.
//!
//! | module | contents |
//! |---|---|
//! | `peer` | [`Peer`]: id and address of another node |
//! | `endpoint` | the node's own endpoint |
//! | `addresses` | addresses of connected peers |
//! | `denied` | closes connections to and from denied peers |
//! | `admission` | limits the connections of peers |
//! | `slots` | the limits of connections |
//! | `topics` | the topics that are followed |
//! | `topic` | one topic: incoming and outgoing messages |
//! | `ingest` | limits, verifies and publishes an incoming message |

mod addresses;
mod admission;
mod denied;
mod endpoint;
mod ingest;
mod peer;
mod slots;
mod topic;
mod topics;

use std::{io, sync::Arc};

use iroh::{EndpointAddr, EndpointId, protocol::Router};
use iroh_gossip::net::Gossip as Swarm;
use tokio::task::JoinSet;
use tracing::info;

pub use self::peer::{Peer, PeerError};
use self::{addresses::PeerAddresses, admission::PeerAdmission, ingest::Ingest, topics::Topics};
use crate::{Node, relay::Relay};

/// Log filter of a program that gossips: the libraries below log the ids and addresses of peers,
/// which do not belong in a log.
pub const LOG_FILTER: &str = "info,iroh=off,iroh_dns=off,iroh_gossip=off,iroh_relay=off,\
    netwatch=off,noq=off,noq_proto=off,noq_udp=off";

/// Maximum size of a message, and of an event that is sent to peers.
const MAX_MESSAGE_BYTES: usize = 65_536;

/// The gossip of a running node.
#[derive(Debug)]
pub struct Gossip(Option<Running>);

#[derive(Debug)]
struct Running {
    router: Router,
    /// Aborted when it is dropped.
    background: JoinSet<()>,
}

/// Joins the gossip, if [`Config::iroh_bind`](crate::Config::iroh_bind) is set.
pub async fn start(node: &Arc<Node>, relay: &Relay) -> io::Result<Gossip> {
    let Some(bind) = node.config.iroh_bind else {
        return Ok(Gossip(None));
    };
    let addresses = PeerAddresses::default();
    let endpoint = endpoint::bind(node, bind, addresses.clone()).await?;
    info!("gossiping as {} at {:?}", endpoint.id(), endpoint.bound_sockets());
    let swarm = Swarm::builder().max_message_size(MAX_MESSAGE_BYTES).spawn(endpoint.clone());
    let admission = PeerAdmission::new(node, swarm.clone());
    let router = Router::builder(endpoint).accept(iroh_gossip::ALPN, admission).spawn();
    let ingest = Ingest::new(node, relay, addresses);
    let mut background = JoinSet::new();
    background.spawn(ingest.clone().follow_document());
    background.spawn(Topics::new(swarm, ingest).run());
    Ok(Gossip(Some(Running { router, background })))
}

/// Returns true if the operator has configured this peer.
fn is_configured(node: &Node, peer: EndpointId) -> bool {
    node.config.peers.iter().any(|configured| configured.id() == peer)
}

// === impl Gossip ===

impl Gossip {
    /// Address of the node for peers; `None` if it does not gossip.
    pub fn address(&self) -> Option<EndpointAddr> {
        self.0.as_ref().map(|running| running.router.endpoint().addr())
    }

    /// Leaves the gossip.
    pub async fn stop(self) {
        if let Some(mut running) = self.0 {
            running.background.shutdown().await;
            // It ends in any case, whether peers were notified or not.
            let _ = running.router.shutdown().await;
        }
    }
}
