//! Events to Apache Kafka.

use std::time::Duration;

use async_trait::async_trait;
use headgate_config::{Problem, Secret};
use headgate_kafka::{
    Inspection, KafkaConfig as Target, KafkaConfigError, Mechanism, Message, PublishError,
    Publisher, Security,
};
use headgate_quota::{EventKind, QuotaEvent};
use prometheus::IntCounter;

use super::{DeliveryError, EventSink};
use crate::{EventMetrics, KafkaConfig, SaslMechanism, SecurityProtocol};

/// Publishes events, keyed by their policy; those of a subject go to one partition.
pub(super) struct KafkaSink {
    publisher: Publisher,
    exceeded: CountedTopic,
    threshold: CountedTopic,
}

struct CountedTopic {
    name: String,
    produced: IntCounter,
}

/// Name and kind of this sink.
const KAFKA: &str = "kafka";

/// Subjects whose events are in flight at a time.
const CONCURRENCY: usize = 64;

impl KafkaSink {
    pub(super) fn new(config: &KafkaConfig, metrics: &EventMetrics) -> Result<Self, Problem> {
        let topic =
            |name: &str| CountedTopic { name: name.to_owned(), produced: metrics.produced(name) };
        Ok(Self {
            publisher: Publisher::new(&target(config)).map_err(|error| problem(&error))?,
            exceeded: topic(config.topic_exceeded.as_str()),
            threshold: topic(config.topic_threshold.as_str()),
        })
    }

    const fn topic(&self, kind: EventKind) -> &CountedTopic {
        match kind {
            EventKind::Exceeded => &self.exceeded,
            EventKind::ThresholdReached => &self.threshold,
        }
    }
}

#[async_trait]
impl EventSink for KafkaSink {
    fn name(&self) -> &str {
        KAFKA
    }

    fn kind(&self) -> &'static str {
        KAFKA
    }

    fn display_name(&self) -> &str {
        KAFKA
    }

    fn concurrency(&self) -> usize {
        CONCURRENCY
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        let invalid = |error: serde_json::Error| DeliveryError::Rejected(error.to_string());
        let payload = serde_json::to_vec(event).map_err(invalid)?;
        let topic = self.topic(event.kind);
        let message = Message {
            topic: &topic.name,
            key: event.quota_id.as_str(),
            partition_by: &event.subject.id,
            payload: &payload,
            headers: &[("event_id", &event.event_id), ("event_type", event.kind.name())],
        };
        self.publisher.publish(message).await.map_err(|error| delivery_error(&error))?;
        topic.produced.inc();
        Ok(())
    }
}

fn delivery_error(error: &PublishError) -> DeliveryError {
    match error {
        PublishError::Unavailable { .. } | PublishError::Busy => {
            DeliveryError::Unavailable(error.to_string())
        }
        // Events of the other topic may be accepted.
        _ => DeliveryError::Rejected(error.to_string()),
    }
}

impl KafkaConfig {
    /// Asks the brokers for their number and for the configured topics. Blocks until they answer or
    /// the time is up.
    ///
    /// # Errors
    ///
    /// Why no broker has answered.
    pub fn inspect(&self, wait: Duration) -> Result<Inspection, String> {
        let topics = [self.topic_exceeded.as_str(), self.topic_threshold.as_str()];
        headgate_kafka::inspect(&target(self), &topics, wait)
    }
}

fn target(config: &KafkaConfig) -> Target {
    let files = config.tls_files();
    let security = match config.security_protocol {
        SecurityProtocol::Plaintext => Security::Plaintext,
        SecurityProtocol::Ssl => Security::Ssl { files },
        SecurityProtocol::SaslSsl => Security::SaslSsl {
            mechanism: match config.sasl_mechanism {
                SaslMechanism::Plain => Mechanism::Plain,
                SaslMechanism::ScramSha256 => Mechanism::ScramSha256,
                SaslMechanism::ScramSha512 => Mechanism::ScramSha512,
            },
            // Both are set: the configuration was validated.
            username: config.username.clone().unwrap_or_default(),
            password: config.password.as_ref().map(Secret::expose).unwrap_or_default().to_owned(),
            files,
        },
    };
    let brokers = config.brokers.iter().map(|broker| broker.as_str().to_owned()).collect();
    Target { send_timeout: config.send_timeout(), ..Target::new(brokers, security) }
}

/// Reports the error under the key that it is about.
fn problem(error: &KafkaConfigError) -> Problem {
    if let KafkaConfigError::File(file) = error {
        return Problem::new(format!("kafka.{}", file.key), error.to_string());
    }
    let key = match error {
        KafkaConfigError::NoBrokers | KafkaConfigError::Broker(_) => "kafka.brokers",
        KafkaConfigError::Timeout(_) => "kafka.send_timeout_seconds",
        KafkaConfigError::Credential(_) => "kafka.password",
        _ => "kafka",
    };
    Problem::new(key, error.to_string())
}
