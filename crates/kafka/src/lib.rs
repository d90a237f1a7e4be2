//! Publishes to Apache Kafka: acknowledged by all replicas in sync, within a bound of time and memory.
//!
//! | module | what it owns |
//! |---|---|
//! | `publisher` | [`Publisher`]: one message, until it is acknowledged or its time is up |
//! | `producer` | librdkafka's producer, and what it reports |
//! | `topics` | how many partitions a topic has |
//! | `partition` | the same partition for the same subject, by Kafka's own hash |
//! | `journal` | what is wrong with the brokers, said once and not once a second |
//! | `config`, `message`, `error` | where the brokers are, what is sent, what went wrong |
//!
//! Nothing here blocks a thread of the async runtime, and what is published waits for brokers that are away no longer
//! than it was told to. Building it takes a C++ compiler, make, pkg-config and OpenSSL's headers (`libssl-dev`).
//!
//! ```no_run
//! use headgate_kafka::{KafkaConfig, Mechanism, Message, Publisher, Security};
//!
//! # async fn run(password: String) -> Result<(), Box<dyn std::error::Error>> {
//! let security = Security::SaslSsl {
//!     mechanism: Mechanism::ScramSha512,
//!     username: "headgate".into(),
//!     password,
//!     ca_file: Some("/etc/headgate/kafka-ca.pem".into()),
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

mod config;
mod error;
mod journal;
mod message;
mod partition;
mod producer;
mod publisher;
mod topics;

pub use self::{
    config::{ConfigError, KafkaConfig, Mechanism, Security, UnknownMechanism},
    error::PublishError,
    message::Message,
    partition::partition_of,
    publisher::Publisher,
};
