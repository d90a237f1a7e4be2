//! Brokers and topics, as the brokers describe them.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rdkafka::{
    ClientContext,
    config::RDKafkaLogLevel,
    error::KafkaError,
    producer::{DeliveryResult, Producer as _, ProducerContext, ThreadedProducer},
};
use tracing::debug;

use crate::{KafkaConfig, KafkaConfigError, producer::settings};

/// What the brokers say about themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Number of brokers of the cluster.
    pub brokers: usize,
    /// Those of the topics asked for that do not exist.
    pub missing_topics: Vec<String>,
}

/// Keeps the last error that librdkafka reports about a connection.
#[derive(Default)]
struct LastError(Mutex<Option<String>>);

/// Asks the brokers once, with the security of `config`. Creates no topic. Blocks until they answer
/// or the time is up.
///
/// # Errors
///
/// The configuration is invalid, or why no broker has answered.
pub fn inspect(
    config: &KafkaConfig,
    topics: &[&str],
    wait: Duration,
) -> Result<Inspection, String> {
    config.validate().map_err(|error: KafkaConfigError| error.to_string())?;
    let client: Result<ThreadedProducer<LastError>, _> =
        settings(config).create_with_context(LastError::default());
    // The full error contains the value, which may be a password.
    let client = client.map_err(|_| "the client cannot be created".to_owned())?;
    let metadata = client.client().fetch_metadata(None, wait).map_err(|error| {
        let reason = client.context().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        reason.unwrap_or_else(|| error.to_string())
    })?;
    let exists = |topic: &&str| metadata.topics().iter().any(|found| found.name() == *topic);
    let missing = topics.iter().filter(|topic| !exists(topic));
    Ok(Inspection {
        brokers: metadata.brokers().len(),
        missing_topics: missing.map(|topic| (*topic).to_owned()).collect(),
    })
}

impl ClientContext for LastError {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        debug!(?level, facility, "Kafka client: {line}");
    }

    fn error(&self, _: KafkaError, reason: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The summary that follows names no reason.
        if !reason.contains("brokers are down") {
            *last = Some(reason.to_owned());
        }
    }
}

impl ProducerContext for LastError {
    type DeliveryOpaque = ();

    fn delivery(&self, _: &DeliveryResult<'_>, (): ()) {}
}
