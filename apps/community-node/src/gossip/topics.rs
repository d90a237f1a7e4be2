//! The topics that are followed.

use std::collections::VecDeque;

use iroh_gossip::net::Gossip as Swarm;
use tokio::task::{AbortHandle, JoinSet};

use super::{ingest::Ingest, topic::Topic};

/// Follows the configured topics, as many as the document allows.
pub(super) struct Topics {
    swarm: Swarm,
    ingest: Ingest,
    tasks: JoinSet<()>,
    /// Tasks of the followed topics, in configured order.
    followed: VecDeque<AbortHandle>,
}

// === impl Topics ===

impl Topics {
    pub(super) fn new(swarm: Swarm, ingest: Ingest) -> Self {
        Self { swarm, ingest, tasks: JoinSet::new(), followed: VecDeque::new() }
    }

    /// Follows the topics; never returns.
    pub(super) async fn run(mut self) {
        let mut changes = self.ingest.node.relay.subscribe();
        loop {
            self.adjust();
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn adjust(&mut self) {
        let node = &self.ingest.node;
        let most = node.relay.with(|document| document.max_concurrent_topics);
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(node.config.topics.len());
        for surplus in self.followed.drain(most.min(self.followed.len())..) {
            surplus.abort();
        }
        for name in &node.config.topics[self.followed.len()..most] {
            let topic = Topic::new(name, &self.swarm, &self.ingest);
            self.followed.push_back(self.tasks.spawn(topic.follow()));
        }
    }
}
