//! One topic: what comes, and what goes out.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use iroh::EndpointId;
use iroh_gossip::{
    TopicId,
    api::{ApiError, Event, GossipReceiver, GossipSender},
    net::Gossip as Swarm,
};
use ring::digest::{SHA256, digest};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time,
};

use super::{MAX_MESSAGE_BYTES, ingest::Ingest};
use crate::relay::events::{Published, Source};

/// How long to wait before a topic is joined again, and how often peers are
/// called that do not answer.
const JOIN_AGAIN: Duration = Duration::from_secs(10);

/// A topic that is followed.
pub(super) struct Topic {
    name: String,
    swarm: Swarm,
    ingest: Ingest,
    peers: Vec<EndpointId>,
    published: Receiver<Arc<Published>>,
}

/// The topic was left: the gossip has ended, or cannot be reached.
struct Left;

// === impl Topic ===

impl Topic {
    pub(super) fn new(name: &str, swarm: &Swarm, ingest: &Ingest) -> Self {
        let peers = ingest.node.config.peers.iter().map(super::Peer::id).collect();
        let published = ingest.events.listen();
        Self {
            name: name.to_owned(),
            swarm: swarm.clone(),
            ingest: ingest.clone(),
            peers,
            published,
        }
    }

    /// Follows the topic for ever.
    pub(super) async fn follow(mut self) {
        loop {
            if let Ok(topic) = self.swarm.subscribe(topic_id(&self.name), self.peers.clone()).await
            {
                let (sender, receiver) = topic.split();
                let Err(Left) = self.converse(&sender, receiver).await;
            }
            time::sleep(JOIN_AGAIN).await;
        }
    }

    async fn converse(
        &mut self,
        sender: &GossipSender,
        mut receiver: GossipReceiver,
    ) -> Result<std::convert::Infallible, Left> {
        let mut calls = time::interval_at(time::Instant::now() + JOIN_AGAIN, JOIN_AGAIN);
        loop {
            tokio::select! {
                event = receiver.next() => self.hear(event).await?,
                published = self.published.recv() => self.tell(sender, published).await?,
                _ = calls.tick() => if !receiver.is_joined() {
                    sender.join_peers(self.peers.clone()).await.map_err(|_| Left)?;
                },
            }
        }
    }

    async fn hear(&self, event: Option<Result<Event, ApiError>>) -> Result<(), Left> {
        match event {
            Some(Ok(Event::Received(message))) => self.ingest.take(&self.name, &message).await,
            // What was missed when peers spoke faster than they were heard stays missed: whoever left
            // would miss more.
            Some(Ok(Event::NeighborUp(_) | Event::NeighborDown(_) | Event::Lagged)) => {}
            Some(Err(_)) | None => return Err(Left),
        }
        Ok(())
    }

    /// Tells peers of what our own clients publish; what peers delivered they pass on themselves.
    async fn tell(
        &self,
        sender: &GossipSender,
        published: Result<Arc<Published>, RecvError>,
    ) -> Result<(), Left> {
        let published = match published {
            Ok(published) => published,
            // Peers miss what they could not have been told fast enough.
            Err(RecvError::Lagged(_)) => return Ok(()),
            Err(RecvError::Closed) => return Err(Left),
        };
        // Nobody but the author may publish what is protected.
        let is_ours = published.source == Source::Client && !published.event.is_protected();
        let json = published.event.json.get();
        if is_ours && self.concerns(&published) && json.len() < MAX_MESSAGE_BYTES {
            let message = json.as_bytes().to_vec();
            sender.broadcast(message.into()).await.map_err(|_| Left)?;
            self.ingest.node.metrics.gossip_sent.inc();
        }
        Ok(())
    }

    fn concerns(&self, published: &Published) -> bool {
        let deleted = published.deleted_topics.iter().map(|topic| &**topic);
        published.event.topics().chain(deleted).any(|topic| topic == self.name)
    }
}

/// Everybody who follows a topic of this name meets under this id.
fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
    TopicId::from_bytes(id)
}
