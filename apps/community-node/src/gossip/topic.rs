//! One topic: incoming and outgoing messages.

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

/// Pause before a topic is joined again, and between calls of peers that do not answer.
const JOIN_AGAIN: Duration = Duration::from_secs(10);

/// A followed topic.
pub(super) struct Topic {
    name: String,
    swarm: Swarm,
    ingest: Ingest,
    peers: Vec<EndpointId>,
    published: Receiver<Arc<Published>>,
}

/// The topic was left: the gossip has ended or failed.
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

    /// Follows the topic; never returns.
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
            // Messages that came too fast are lost; leaving the topic would lose more.
            Some(Ok(Event::NeighborUp(_) | Event::NeighborDown(_) | Event::Lagged)) => {}
            Some(Err(_)) | None => return Err(Left),
        }
        Ok(())
    }

    /// Sends events of our own clients to peers; peers forward their own.
    async fn tell(
        &self,
        sender: &GossipSender,
        published: Result<Arc<Published>, RecvError>,
    ) -> Result<(), Left> {
        let published = match published {
            Ok(published) => published,
            // Events that could not be sent fast enough are lost.
            Err(RecvError::Lagged(_)) => return Ok(()),
            Err(RecvError::Closed) => return Err(Left),
        };
        // Only the author may publish a protected event.
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

/// Id of the topic of this name.
fn topic_id(name: &str) -> TopicId {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, name.as_bytes()).as_ref());
    TopicId::from_bytes(id)
}
