//! Cache of partition counts.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::{
    sync,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::producer::Producer;

/// TTL of an entry. Partitions are rarely added and never removed.
const TTL: Duration = Duration::from_secs(60);

/// Time that brokers may take to create a missing topic.
const CREATION: Duration = Duration::from_secs(2);

/// Pause before a missing topic is requested again.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Topics {
    cache: Mutex<HashMap<String, CachedTopic>>,
    /// Held during a request, so that concurrent callers share one.
    asking: sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct CachedTopic {
    partitions: NonZeroU32,
    until: Instant,
}

// === impl Topics ===

impl Topics {
    /// Number of partitions of a topic, as last reported by the brokers.
    pub(crate) async fn partitions(
        &self,
        producer: &Arc<Producer>,
        topic: &str,
        deadline: Instant,
    ) -> Result<NonZeroU32, KafkaError> {
        if let Some(fresh) = self.fresh(topic) {
            return Ok(fresh);
        }
        let _asking = self.asking.lock().await;
        if let Some(fresh) = self.fresh(topic) {
            return Ok(fresh);
        }
        match ask(producer, topic, deadline).await {
            Ok(partitions) => Ok(self.insert(topic, partitions)),
            // A stale entry is most likely still correct.
            Err(error) => match self.lock().get(topic) {
                Some(stale) if error.rdkafka_error_code().is_none_or(|code| !is_missing(code)) => {
                    Ok(stale.partitions)
                }
                _ => Err(error),
            },
        }
    }

    /// Removes a topic from the cache.
    pub(crate) fn forget(&self, topic: &str) {
        self.lock().remove(topic);
    }

    fn fresh(&self, topic: &str) -> Option<NonZeroU32> {
        let known = *self.lock().get(topic)?;
        (Instant::now() < known.until).then_some(known.partitions)
    }

    fn insert(&self, topic: &str, partitions: NonZeroU32) -> NonZeroU32 {
        let known = CachedTopic { partitions, until: Instant::now() + TTL };
        self.lock().insert(topic.to_owned(), known);
        partitions
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, CachedTopic>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if the topic does not exist, or not yet.
pub(crate) fn is_missing(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{
        LeaderNotAvailable, UnknownPartition, UnknownTopic, UnknownTopicOrPartition,
    };
    matches!(code, LeaderNotAvailable | UnknownPartition | UnknownTopic | UnknownTopicOrPartition)
}

async fn ask(
    producer: &Arc<Producer>,
    topic: &str,
    deadline: Instant,
) -> Result<NonZeroU32, KafkaError> {
    let limit = deadline.min(Instant::now() + CREATION);
    loop {
        let wait = deadline.saturating_duration_since(Instant::now());
        let error = match count(producer, topic, wait).await.map(NonZeroU32::new) {
            Ok(Some(partitions)) => return Ok(partitions),
            Ok(None) => KafkaError::MetadataFetch(RDKafkaErrorCode::LeaderNotAvailable),
            Err(error) => error,
        };
        let is_missing = error.rdkafka_error_code().is_some_and(is_missing);
        if !is_missing || Instant::now() + PAUSE >= limit {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
}

/// Requests the count on a blocking thread, because librdkafka blocks.
async fn count(producer: &Arc<Producer>, topic: &str, wait: Duration) -> Result<u32, KafkaError> {
    let (producer, topic) = (Arc::clone(producer), topic.to_owned());
    let counted = spawn_blocking(move || producer.count_partitions(&topic, wait)).await;
    counted.unwrap_or(Err(KafkaError::Canceled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_expire_after_a_minute() {
        let (topics, three) = (Topics::default(), NonZeroU32::new(3).unwrap());
        topics.insert("t", three);
        tokio::time::advance(TTL.saturating_sub(PAUSE)).await;
        assert_eq!(topics.fresh("t"), Some(three));
        assert_eq!(topics.fresh("another"), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(topics.fresh("t"), None);

        topics.insert("t", three);
        topics.forget("t");
        assert_eq!(topics.fresh("t"), None);
    }
}
