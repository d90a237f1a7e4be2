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
    KafkaConfig, KafkaConfigError, Message, PublishError,
    broker_log::BrokerLog,
    partition_of,
    producer::Producer,
    topics::{self, Topics},
};

/// Maximum number of messages in flight. Others wait.
const IN_FLIGHT: usize = 1_000;

/// Publishes messages, concurrently if wanted.
///
/// Messages with the same `partition_by` arrive in order, if each is published after the previous
/// one was acknowledged. A message that is retried after an error may arrive twice.
pub struct Publisher {
    config: KafkaConfig,
    producer: RwLock<Arc<Producer>>,
    slots: Arc<Semaphore>,
    topics: Topics,
    broker_log: Arc<BrokerLog>,
}

// === impl Publisher ===

impl Publisher {
    /// A publisher. The brokers need not be up yet.
    pub fn new(config: &KafkaConfig) -> Result<Self, KafkaConfigError> {
        config.validate()?;
        let broker_log = Arc::new(BrokerLog::new(&config.brokers));
        let producer = Producer::new(config, Arc::clone(&broker_log))?;
        Ok(Self {
            config: config.clone(),
            producer: RwLock::new(Arc::new(producer)),
            slots: Arc::new(Semaphore::new(IN_FLIGHT)),
            topics: Topics::default(),
            broker_log,
        })
    }

    /// Publishes a message, and waits until all in-sync replicas have it or the timeout expires.
    ///
    /// Needs a tokio runtime with a timer. Dropping the future does not withdraw the message.
    pub async fn publish(&self, message: Message<'_>) -> Result<(), PublishError> {
        message.validate()?;
        let deadline = Instant::now() + self.config.send_timeout;
        let slot = self.slot(deadline).await?;
        let producer = self.producer();
        let timed_out = Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut));
        let sent = timeout_at(deadline, self.send(&producer, &message, slot, deadline)).await;
        let Err(error) = sent.unwrap_or(timed_out) else {
            return Ok(());
        };
        self.recover(&error, message.topic, &producer).await;
        Err(PublishError::new(&error, message.topic, self.broker_log.last_error()))
    }

    /// Closes all connections and drops messages in flight.
    ///
    /// Call it before the program ends: dropping the publisher closes them, too, but does not wait.
    pub async fn close(self) {
        let producer = self.producer.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A pending metadata request shuts it down when it is done.
        if let Some(producer) = Arc::into_inner(producer) {
            let _ = spawn_blocking(move || producer.shut_down()).await;
        }
    }

    async fn slot(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, PublishError> {
        let slot = timeout_at(deadline, Arc::clone(&self.slots).acquire_owned()).await;
        // The semaphore is never closed.
        slot.ok().and_then(Result::ok).ok_or(PublishError::Busy)
    }

    async fn send(
        &self,
        producer: &Arc<Producer>,
        message: &Message<'_>,
        slot: OwnedSemaphorePermit,
        deadline: Instant,
    ) -> Result<(), KafkaError> {
        let partitions = self.topics.partitions(producer, message.topic, deadline).await?;
        let partition = partition_of(message.partition_by, partitions);
        let delivered = producer.send(message, partition, slot)?;
        delivered.await.unwrap_or(Err(KafkaError::Canceled))
    }

    /// Drops stale state, so that the next message can succeed.
    async fn recover(&self, error: &KafkaError, topic: &str, failed: &Arc<Producer>) {
        if error.rdkafka_error_code().is_some_and(topics::is_missing) {
            self.topics.forget(topic);
        }
        if failed.has_failed() {
            self.replace(failed).await;
        }
    }

    /// Replaces an idempotent producer that has lost track of its messages and sends no more.
    async fn replace(&self, failed: &Arc<Producer>) {
        let (config, broker_log) = (self.config.clone(), Arc::clone(&self.broker_log));
        // Reads files and starts threads.
        let made = spawn_blocking(move || Producer::new(&config, broker_log)).await;
        let Ok(Ok(fresh)) = made else {
            warn!("failed to replace the Kafka client after a fatal error");
            return;
        };
        let mut producer = self.producer.write().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&producer, failed) {
            warn!("replaced the Kafka client after a fatal error");
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
