//! How many partitions a topic has: asked once, and again every minute.

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

/// How long an answer is good for: partitions are added seldom, and never taken away.
const FRESH: Duration = Duration::from_secs(60);

/// How long a topic that nobody knows may take to come into being, on brokers that create what they are asked for.
const CREATION: Duration = Duration::from_secs(2);

/// How long to wait before asking for such a topic again.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct Topics {
    known: Mutex<HashMap<String, Known>>,
    /// Held while asking, so that many who want to know ask once.
    asking: sync::Mutex<()>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    partitions: NonZeroU32,
    until: Instant,
}

// === impl Topics ===

impl Topics {
    /// How many partitions the topic has, or had when the brokers last said so.
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
            Ok(partitions) => Ok(self.learn(topic, partitions)),
            // What was true a while ago most likely is.
            Err(error) => match self.lock().get(topic) {
                Some(stale) if error.rdkafka_error_code().is_none_or(|code| !is_missing(code)) => {
                    Ok(stale.partitions)
                }
                _ => Err(error),
            },
        }
    }

    /// Asks again the next time.
    pub(crate) fn forget(&self, topic: &str) {
        self.lock().remove(topic);
    }

    fn fresh(&self, topic: &str) -> Option<NonZeroU32> {
        let known = *self.lock().get(topic)?;
        (Instant::now() < known.until).then_some(known.partitions)
    }

    fn learn(&self, topic: &str, partitions: NonZeroU32) -> NonZeroU32 {
        let known = Known { partitions, until: Instant::now() + FRESH };
        self.lock().insert(topic.to_owned(), known);
        partitions
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is no such topic, or not yet.
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
    let patience = deadline.min(Instant::now() + CREATION);
    loop {
        let wait = deadline.saturating_duration_since(Instant::now());
        let error = match count(producer, topic, wait).await.map(NonZeroU32::new) {
            Ok(Some(partitions)) => return Ok(partitions),
            Ok(None) => KafkaError::MetadataFetch(RDKafkaErrorCode::LeaderNotAvailable),
            Err(error) => error,
        };
        let is_missing = error.rdkafka_error_code().is_some_and(is_missing);
        if !is_missing || Instant::now() + PAUSE >= patience {
            return Err(error);
        }
        sleep(PAUSE).await;
    }
}

/// librdkafka blocks while it asks, so it does that on a thread that may block.
async fn count(producer: &Arc<Producer>, topic: &str, wait: Duration) -> Result<u32, KafkaError> {
    let (producer, topic) = (Arc::clone(producer), topic.to_owned());
    let counted = spawn_blocking(move || producer.count_partitions(&topic, wait)).await;
    counted.unwrap_or(Err(KafkaError::Canceled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_good_for_a_minute() {
        let (topics, three) = (Topics::default(), NonZeroU32::new(3).unwrap());
        topics.learn("t", three);
        tokio::time::advance(FRESH.saturating_sub(PAUSE)).await;
        assert_eq!(topics.fresh("t"), Some(three));
        assert_eq!(topics.fresh("another"), None);
        tokio::time::advance(PAUSE).await;
        assert_eq!(topics.fresh("t"), None);

        topics.learn("t", three);
        topics.forget("t");
        assert_eq!(topics.fresh("t"), None);
    }
}
