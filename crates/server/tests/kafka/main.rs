//! Events on a real Kafka broker.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../server/harness.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod harness;
#[path = "../server/events/support.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::{collections::HashMap, fs, path::Path, time::Duration};

use futures_util::future::join_all;
use harness::Server;
use headgate_testkit::{CertificateAuthority, Kafka, Postgres, require};
use rdkafka::{
    ClientConfig, Message, Offset, TopicPartitionList,
    consumer::{Consumer, StreamConsumer},
};
use serde_json::Value;
use support::exhausted;
use tokio::time::{sleep, timeout};

const EXCEEDED: &str = "k1s0.system.quota.exceeded.v1";
const THRESHOLD: &str = "k1s0.system.quota.threshold.reached.v1";
const SUBJECTS: usize = 30;
const PATIENCE: Duration = Duration::from_secs(120);

/// An event that is not confirmed in time is sent again, which a busy machine must not cause.
const PATIENT: (&str, &str) = ("kafka.send_timeout_seconds", "60");

/// A published message.
struct Published {
    topic: String,
    partition: i32,
    key: String,
    event: Value,
}

/// Reads both topics until there are at least `least` messages and no more arrive.
async fn read(brokers: &str, least: usize) -> Vec<Published> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "test");
    let consumer: StreamConsumer = config.create().unwrap();
    let mut all = TopicPartitionList::new();
    for topic in [EXCEEDED, THRESHOLD] {
        for partition in 0..3 {
            all.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
        }
    }
    consumer.assign(&all).unwrap();
    let mut messages = Vec::new();
    loop {
        let patience = if messages.len() < least { PATIENCE } else { Duration::from_secs(3) };
        let Ok(message) = timeout(patience, consumer.recv()).await else {
            assert!(messages.len() >= least, "{} of {least}", messages.len());
            return messages;
        };
        let message = message.unwrap();
        messages.push(Published {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            key: message.key_view::<str>().unwrap().unwrap().to_owned(),
            event: serde_json::from_slice(message.payload().unwrap()).unwrap(),
        });
    }
}

/// Counts the messages of each event.
fn counted(messages: &[Published]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for message in messages {
        *counts.entry(message.event["event_id"].as_str().unwrap()).or_default() += 1;
    }
    counts
}

/// Waits until the metric of this sink satisfies the condition.
async fn metric(server: &Server, name: &str, fits: impl Fn(f64) -> bool) {
    let line = format!(r#"{name}{{sink="kafka",service="headgate"}} "#);
    let waiting = async {
        loop {
            let text = server.get("/metrics").await.text;
            let value = text.lines().find_map(|it| it.strip_prefix(&line));
            let value = value.unwrap_or_else(|| panic!("{line}: {text}")).parse();
            if fits(value.unwrap()) {
                return;
            }
            // Another task updates it.
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_publish_each_event_once() {
    let (kafka, postgres) = (require!(Kafka::start()), require!(Postgres::shared()));
    let brokers = kafka.brokers();
    let keys = [("database.url", postgres.url()), ("kafka.brokers", &brokers), PATIENT];
    let servers = [Server::start(&keys).await, Server::start(&keys).await];
    let subjects: Vec<String> = (0..SUBJECTS).map(|i| format!("tenant-{i}")).collect();
    let used = subjects.iter().enumerate().map(|(i, name)| exhausted(&servers[i % 2], name));
    let policies = join_all(used).await;

    let messages = read(&brokers, 2 * SUBJECTS).await;
    let counts = counted(&messages);
    assert_eq!((counts.len(), messages.len()), (2 * SUBJECTS, 2 * SUBJECTS), "{counts:?}");
    let mut partitions = HashMap::new();
    for message in &messages {
        let event = &message.event;
        let topic = match event["event_type"].as_str().unwrap() {
            "QUOTA_EXCEEDED" => EXCEEDED,
            _ => THRESHOLD,
        };
        assert_eq!(message.topic, topic);
        assert_eq!(event["quota_id"], message.key);
        assert!(policies.contains(&message.key));
        let subject = event["subject_id"].as_str().unwrap().to_owned();
        let partition = *partitions.entry(subject).or_insert(message.partition);
        assert_eq!(partition, message.partition, "one subject, one partition");
    }
    assert!(partitions.values().any(|it| *it != messages[0].partition), "all in one partition");
    // A message is counted when the broker has confirmed it, which may be after it was read.
    let counted = async {
        while produced(&servers).await < 2 * SUBJECTS {
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, counted).await.expect("all of them are counted");
    assert_eq!(produced(&servers).await, 2 * SUBJECTS);
}

/// Number of messages that the servers count as produced.
async fn produced(servers: &[Server]) -> usize {
    let mut produced = 0;
    for server in servers {
        let text = server.get("/metrics").await.text;
        let lines = text.lines().filter(|it| it.starts_with("kafka_messages_produced_total{"));
        produced +=
            lines.map(|it| it.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum::<usize>();
    }
    produced
}

#[tokio::test(flavor = "multi_thread")]
async fn events_during_a_kafka_outage_are_published_afterwards() {
    let (kafka, postgres) = (require!(Kafka::start()), require!(Postgres::shared()));
    let brokers = kafka.brokers();
    kafka.stop();
    let keys = [
        ("database.url", postgres.url()),
        ("kafka.brokers", &brokers),
        // Short enough to wait for, long enough for a broker that has just started.
        ("kafka.send_timeout_seconds", "10"),
    ];
    let servers = [Server::start(&keys).await, Server::start(&keys).await];
    let subjects: Vec<String> = (0..SUBJECTS).map(|i| format!("tenant-{i}")).collect();
    let used = subjects.iter().enumerate().map(|(i, name)| exhausted(&servers[i % 2], name));
    join_all(used).await;
    for server in &servers {
        metric(server, "headgate_events_undelivered", |count| count > 2.0 * SUBJECTS as f64 - 0.5)
            .await;
        metric(server, "headgate_events_oldest_undelivered_age_seconds", |age| age > 0.0).await;
    }

    tokio::task::block_in_place(|| kafka.restart());
    let messages = read(&brokers, 2 * SUBJECTS).await;
    let counts = counted(&messages);
    assert_eq!(counts.len(), 2 * SUBJECTS, "every event, and none that did not happen");
    for server in &servers {
        metric(server, "headgate_events_undelivered", |count| count < 0.5).await;
    }
}

/// Replaces the configuration file and reloads; returns the applied keys.
async fn reload(server: &Server, file: &Path, yaml: &str) -> Vec<String> {
    fs::write(file, yaml).unwrap();
    let reply = server.admin("POST", "/api/v1/config/reload", "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let applied = reply.json()["applied"].as_array().unwrap().clone();
    applied.iter().map(|change| change["key"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_topics_and_certificates_are_live() {
    let (kafka, postgres) =
        (require!(Kafka::builder().client_certificates().start()), require!(Postgres::shared()));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headgate.yaml");
    let database = format!("database: {{url: '{}'}}\n", postgres.url());
    fs::write(&file, &database).unwrap();
    // Short enough to wait for, long enough that a busy machine sends nothing twice.
    let server = Server::start_with_file(&file, &[("kafka.send_timeout_seconds", "20")]).await;
    exhausted(&server, "before").await;

    let plain = |topic: &str| {
        format!("{database}kafka: {{brokers: ['{}'], topic_threshold: {topic}}}\n", kafka.brokers())
    };
    assert_eq!(reload(&server, &file, &plain(THRESHOLD)).await, ["kafka.brokers"]);
    assert_eq!(read(&kafka.brokers(), 2).await.len(), 2, "events before it are published, too");

    assert_eq!(reload(&server, &file, &plain(EXCEEDED)).await, ["kafka.topic_threshold"]);
    exhausted(&server, "after").await;
    let messages = read(&kafka.brokers(), 4).await;
    let of_threshold = messages.iter().filter(|message| message.topic == THRESHOLD).count();
    assert_eq!((messages.len(), of_threshold), (4, 1));

    // A client certificate that the broker does not know, and then one that it does, in the same
    // files.
    let secure = kafka.secure();
    let stranger = CertificateAuthority::new("other").issue(&["client.test"]);
    let (cert, key) = stranger.write(folder.path(), "client");
    let yaml = format!(
        "{database}kafka: {{brokers: ['{}'], security_protocol: SSL, ca_file: {}, cert_file: {}, \
         key_file: {}}}\n",
        secure.ssl,
        secure.ca_file.display(),
        cert.display(),
        key.display()
    );
    reload(&server, &file, &yaml).await;
    exhausted(&server, "refused").await;
    metric(&server, "headgate_events_undelivered", |count| count > 1.5).await;
    fs::copy(&secure.client.0, &cert).unwrap();
    fs::copy(&secure.client.1, &key).unwrap();
    assert_eq!(reload(&server, &file, &yaml).await, [""; 0]);
    assert_eq!(read(&kafka.brokers(), 6).await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_requires_client_certificates_gets_one() {
    let (kafka, postgres) =
        (require!(Kafka::builder().client_certificates().start()), require!(Postgres::shared()));
    let secure = kafka.secure();
    let keys = [
        ("database.url", postgres.url()),
        ("kafka.brokers", &secure.ssl),
        ("kafka.security_protocol", "SSL"),
        ("kafka.ca_file", secure.ca_file.to_str().unwrap()),
        ("kafka.cert_file", secure.client.0.to_str().unwrap()),
        ("kafka.key_file", secure.client.1.to_str().unwrap()),
        PATIENT,
    ];
    let server = Server::start(&keys).await;
    exhausted(&server, "tenant-abc").await;
    assert_eq!(read(&kafka.brokers(), 2).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_requires_authentication_gets_credentials() {
    let (kafka, postgres) =
        (require!(Kafka::builder().secure().start()), require!(Postgres::shared()));
    let secure = kafka.secure();
    let keys = [
        ("database.url", postgres.url()),
        ("kafka.brokers", &secure.sasl_ssl),
        ("kafka.security_protocol", "SASL_SSL"),
        ("kafka.sasl_mechanism", "SCRAM-SHA-512"),
        ("kafka.username", secure.username),
        ("kafka.password", secure.password),
        ("kafka.ca_file", secure.ca_file.to_str().unwrap()),
        PATIENT,
    ];
    let server = Server::start(&keys).await;
    exhausted(&server, "tenant-abc").await;
    assert_eq!(read(&kafka.brokers(), 2).await.len(), 2);
}
