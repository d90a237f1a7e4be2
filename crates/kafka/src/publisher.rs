use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{Instant, timeout_at},
};
use tracing::warn;

use crate::{
    ConfigError, KafkaConfig, Message, PublishError,
    journal::Journal,
    partition_of,
    producer::Producer,
    topics::{self, Topics},
};

/// How many messages may be on their way to the brokers; others wait for their turn.
const IN_FLIGHT: usize = 1_000;

/// Publishes messages, one at a time or many at once.
///
/// Messages of one `partition_by` arrive in the order in which they were published, if each is published after the one
/// before it was acknowledged. A message whose publishing failed and is repeated may arrive twice.
pub struct Publisher {
    config: KafkaConfig,
    producer: RwLock<Arc<Producer>>,
    places: Arc<Semaphore>,
    topics: Topics,
    journal: Arc<Journal>,
}

// === impl Publisher ===

impl Publisher {
    /// A publisher for these brokers, which need not be there yet.
    pub fn new(config: &KafkaConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let journal = Arc::new(Journal::new(&config.brokers));
        let producer = Producer::new(config, Arc::clone(&journal))?;
        Ok(Self {
            config: config.clone(),
            producer: RwLock::new(Arc::new(producer)),
            places: Arc::new(Semaphore::new(IN_FLIGHT)),
            topics: Topics::default(),
            journal,
        })
    }

    /// Publishes a message, and returns once all replicas in sync have it, or its time is up.
    ///
    /// It must be called on a tokio runtime that keeps time. Dropping the future does not take the message back.
    pub async fn publish(&self, message: Message<'_>) -> Result<(), PublishError> {
        message.validate()?;
        let deadline = Instant::now() + self.config.send_timeout;
        let place = self.place(deadline).await?;
        let producer = self.producer();
        let timed_out = Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut));
        let sent = timeout_at(deadline, self.send(&producer, &message, place, deadline)).await;
        let Err(error) = sent.unwrap_or(timed_out) else {
            return Ok(());
        };
        self.recover(&error, message.topic, &producer).await;
        Err(PublishError::new(&error, message.topic, self.journal.trouble()))
    }

    /// Ends all connections, and drops what nobody waits for any more.
    ///
    /// A program that ends should do this first: dropping the publisher ends them, too, and does not wait for that.
    pub async fn close(self) {
        let producer = self.producer.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Somebody who still asks for a topic ends it when done.
        if let Some(producer) = Arc::into_inner(producer) {
            let _ = spawn_blocking(move || producer.end()).await;
        }
    }

    async fn place(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, PublishError> {
        let place = timeout_at(deadline, Arc::clone(&self.places).acquire_owned()).await;
        // It is never closed.
        place.ok().and_then(Result::ok).ok_or(PublishError::Busy)
    }

    async fn send(
        &self,
        producer: &Arc<Producer>,
        message: &Message<'_>,
        place: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<(), KafkaError> {
        let partitions = self.topics.partitions(producer, message.topic, deadline).await?;
        let partition = partition_of(message.partition_by, partitions);
        let delivered = producer.send(message, partition, place)?;
        delivered.await.unwrap_or(Err(KafkaError::Canceled))
    }

    /// Does what is needed for the next message to fare better.
    async fn recover(&self, error: &KafkaError, topic: &str, failed: &Arc<Producer>) {
        if error.rdkafka_error_code().is_some_and(topics::is_missing) {
            self.topics.forget(topic);
        }
        if failed.is_dead() {
            self.replace(failed).await;
        }
    }

    /// An idempotent producer that lost track of what it has sent does nothing any more.
    async fn replace(&self, failed: &Arc<Producer>) {
        let (config, journal) = (self.config.clone(), Arc::clone(&self.journal));
        // It reads files, and starts threads.
        let made = spawn_blocking(move || Producer::new(&config, journal)).await;
        let Ok(Ok(fresh)) = made else {
            warn!("Kafka's client failed for good, and cannot be made again yet");
            return;
        };
        let mut producer = self.producer.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&producer, failed) {
            warn!("Kafka's client failed for good; another takes its place");
            *producer = Arc::new(fresh);
        }
    }

    fn producer(&self) -> Arc<Producer> {
        Arc::clone(&self.producer.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("config", &self.config).finish_non_exhaustive()
    }
}
