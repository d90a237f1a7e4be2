use std::{
    collections::{HashMap, HashSet},
    num::NonZeroU32,
    sync::Arc,
};

use headgate_kafka::{Message, PublishError, partition_of};
use headgate_testkit::{Kafka, require};
use rdkafka::Message as _;
use tokio::{task::JoinSet, time::timeout};

use crate::support::{PATIENCE, create_topic, header, message, payload, publisher, read};

#[tokio::test]
async fn a_message_arrives_with_key_payload_and_headers() {
    let kafka = require!(Kafka::shared());
    let topic = kafka.new_topic();
    let message = Message {
        topic: &topic,
        key: "quota_7",
        partition_by: "tenant-2",
        payload: br#"{"event":"QUOTA_EXCEEDED"}"#,
        headers: &[("event_id", "e-1"), ("empty", "")],
    };
    let publisher = publisher(kafka.brokers());
    // The broker creates the topic on the first request. A busy one takes longer than a call waits.
    let delivery = async {
        while let Err(error) = publisher.publish(message).await {
            assert!(error.is_retryable(), "{error}");
        }
    };
    timeout(PATIENCE, delivery).await.unwrap();
    publisher.close().await;

    let found = read(kafka.brokers(), &topic, 3, |found| found.len() == 1).await.remove(0);
    assert_eq!(found.key(), Some(&b"quota_7"[..]));
    assert_eq!(payload(&found), r#"{"event":"QUOTA_EXCEEDED"}"#);
    assert_eq!(header(&found, "event_id"), Some("e-1"));
    assert_eq!(header(&found, "empty"), Some(""));
    let three = NonZeroU32::new(3).unwrap();
    assert_eq!(found.partition(), partition_of("tenant-2", three) as i32);
    assert_ne!(found.partition(), partition_of("quota_7", three) as i32);
}

#[tokio::test]
async fn messages_of_a_subject_are_ordered_in_one_partition() {
    const SUBJECTS: usize = 40;
    const EACH: usize = 10;
    let kafka = require!(Kafka::shared());
    let topic = kafka.new_topic();
    create_topic(kafka.brokers(), &topic, 6).await;
    let publisher = Arc::new(publisher(kafka.brokers()));
    let mut tasks = JoinSet::new();
    for subject in 0..SUBJECTS {
        let (publisher, topic) = (Arc::clone(&publisher), topic.clone());
        tasks.spawn(async move {
            let subject = format!("tenant-{subject}");
            for turn in 0..EACH {
                let text = format!("{subject} {turn}");
                publisher.publish(message(&topic, &subject, &text)).await.unwrap();
            }
        });
    }
    tasks.join_all().await;

    let found = read(kafka.brokers(), &topic, 6, |found| found.len() == SUBJECTS * EACH).await;
    let used: HashSet<_> = found.iter().map(rdkafka::Message::partition).collect();
    assert_eq!(used.len(), 6);
    let mut turns: HashMap<&str, usize> = HashMap::new();
    for message in &found {
        let (subject, turn) = payload(message).split_once(' ').unwrap();
        let partition = partition_of(subject, NonZeroU32::new(6).unwrap());
        assert_eq!(message.partition(), partition as i32, "{subject}");
        let expected = turns.entry(subject).or_default();
        assert_eq!(turn, expected.to_string(), "{subject}");
        *expected += 1;
    }
}

#[tokio::test]
async fn excess_messages_wait_for_a_slot() {
    const COUNT: usize = 3_000;
    let kafka = require!(Kafka::shared());
    let topic = kafka.new_topic();
    create_topic(kafka.brokers(), &topic, 3).await;
    let publisher = Arc::new(publisher(kafka.brokers()));
    let mut tasks = JoinSet::new();
    for number in 0..COUNT {
        let (publisher, topic) = (Arc::clone(&publisher), topic.clone());
        tasks.spawn(async move {
            let number = number.to_string();
            publisher.publish(message(&topic, &number, &number)).await
        });
    }
    let results = tasks.join_all().await;
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|it| it.is_err()));

    let found = read(kafka.brokers(), &topic, 3, |found| found.len() == COUNT).await;
    let different: HashSet<_> = found.iter().map(payload).collect();
    assert_eq!(different.len(), COUNT);
}

#[tokio::test]
async fn a_message_that_is_too_large_is_rejected() {
    let kafka = require!(Kafka::shared());
    let topic = kafka.new_topic();
    create_topic(kafka.brokers(), &topic, 3).await;
    let publisher = publisher(kafka.brokers());
    let huge = "x".repeat(2_000_000);
    let error = publisher.publish(message(&topic, "tenant-1", &huge)).await.unwrap_err();
    assert!(matches!(error, PublishError::Rejected { .. }), "{error}");
    assert!(!error.is_retryable());
    publisher.publish(message(&topic, "tenant-1", "small")).await.unwrap();
}
