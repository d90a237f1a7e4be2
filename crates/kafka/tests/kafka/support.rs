use std::time::Duration;

use headgate_kafka::{KafkaConfig, Message, Publisher, Security};
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    consumer::{Consumer, StreamConsumer},
    message::{Headers, OwnedMessage},
};
use tokio::time::timeout;

/// Timeout on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A minimal message.
pub(crate) fn message<'a>(topic: &'a str, subject: &'a str, payload: &'a str) -> Message<'a> {
    Message {
        topic,
        key: "quota_1",
        partition_by: subject,
        payload: payload.as_bytes(),
        headers: &[],
    }
}

pub(crate) fn config(brokers: &str) -> KafkaConfig {
    secure_config(brokers, Security::Plaintext)
}

pub(crate) fn secure_config(brokers: &str, security: Security) -> KafkaConfig {
    let brokers = brokers.split(',').map(str::to_owned).collect();
    KafkaConfig { send_timeout: PATIENCE, ..KafkaConfig::new(brokers, security) }
}

/// A publisher with a long timeout.
pub(crate) fn publisher(brokers: &str) -> Publisher {
    Publisher::new(&config(brokers)).unwrap()
}

pub(crate) async fn create_topic(brokers: &str, topic: &str, partitions: i32) {
    let client: AdminClient<DefaultClientContext> = client(brokers).create().unwrap();
    let topic = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let created = client.create_topics([&topic], &options).await.unwrap();
    assert!(created.iter().all(Result::is_ok), "{created:?}");
}

/// Reads `count` messages of a topic. Those of a partition are in order.
pub(crate) async fn read(
    brokers: &str,
    topic: &str,
    partitions: i32,
    enough: impl Fn(&[OwnedMessage]) -> bool,
) -> Vec<OwnedMessage> {
    // Required, although it joins no group.
    let consumer: StreamConsumer = client(brokers).set("group.id", topic).create().unwrap();
    let mut all = TopicPartitionList::new();
    for partition in 0..partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&all).unwrap();
    let mut messages = Vec::new();
    while !enough(&messages) {
        let next = timeout(PATIENCE, consumer.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("only {} messages", messages.len()));
        messages.push(next.unwrap().detach());
    }
    messages
}

pub(crate) fn payload(message: &OwnedMessage) -> &str {
    message.payload_view().unwrap().unwrap()
}

pub(crate) fn header<'a>(message: &'a OwnedMessage, name: &str) -> Option<&'a str> {
    let header = message.headers()?.iter().find(|header| header.key == name)?;
    std::str::from_utf8(header.value?).ok()
}

fn client(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}
