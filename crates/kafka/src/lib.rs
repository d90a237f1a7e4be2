//! Publishes to Apache Kafka: acknowledged by all in-sync replicas, within bounds of time and
//! memory.
//!
//! | module | contents |
//! |---|---|
//! | `publisher` | [`Publisher`]: publishes a message and waits for its acknowledgement |
//! | `producer` | the producer of librdkafka, and its callbacks |
//! | `inspect` | [`inspect()`]: brokers and topics, as the brokers describe them |
//! | `topics` | cache of partition counts |
//! | `partition` | the partition of a subject, by the hash of Kafka |
//! | `broker_log` | rate-limited logging of broker errors |
//! | `config`, `message`, `error` | configuration, messages and errors |
//!
//! No call blocks a thread of the async runtime, and none waits longer than its timeout for brokers
//! that are down. The build needs a C++ compiler, make, pkg-config and the headers of OpenSSL
//! (`libssl-dev`).
//!
//! ```no_run
//! use headgate_kafka::{KafkaConfig, Mechanism, Message, Publisher, Security, TlsFiles};
//!
//! # async fn run(password: String) -> Result<(), Box<dyn std::error::Error>> {
//! let security = Security::SaslSsl {
//!     mechanism: Mechanism::ScramSha512,
//!     username: "headgate".into(),
//!     password,
//!     files: TlsFiles { ca_file: Some("/etc/kafka-ca.pem".into()), ..TlsFiles::default() },
//! };
//! let brokers = vec!["kafka-1:9093".into(), "kafka-2:9093".into()];
//! let publisher = Publisher::new(&KafkaConfig::new(brokers, security))?;
//!
//! let event = Message {
//!     topic: "quota.exceeded.v1",
//!     key: "quota_1",
//!     partition_by: "tenant-7",
//!     payload: br#"{"quota_id":"quota_1"}"#,
//!     headers: &[("event_id", "e-1")],
//! };
//! match publisher.publish(event).await {
//!     Ok(()) => {}
//!     Err(error) if error.is_retryable() => { /* keep it, and publish it again */ }
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```

mod broker_log;
mod config;
mod error;
mod inspect;
mod message;
mod partition;
mod producer;
mod publisher;
mod topics;

pub use headgate_tls_client::{TlsFileError, TlsFiles};

pub use self::{
    config::{KafkaConfig, KafkaConfigError, Mechanism, Security, UnknownMechanism},
    error::PublishError,
    inspect::{Inspection, inspect},
    message::Message,
    partition::partition_of,
    publisher::Publisher,
};
