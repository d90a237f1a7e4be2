use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use headgate_kafka::{Message, PublishError, Publisher};
use headgate_testkit::{Kafka, require};
use rdkafka::message::OwnedMessage;
use tokio::time::{Instant, sleep, timeout};
use tracing_subscriber::EnvFilter;

use crate::support::{PATIENCE, config, create_topic, message, payload, publisher, read};

/// The log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
        subscriber.with_env_filter(EnvFilter::new("info")).with_ansi(false).init();
        log
    }

    /// Number of lines with this text and these brokers. Other tests write to the log, too.
    fn count(&self, text: &str, brokers: &str) -> usize {
        let log = self.0.lock().unwrap();
        let is_it = |line: &&str| line.contains(text) && line.contains(brokers);
        String::from_utf8_lossy(&log).lines().filter(is_it).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_during_an_outage_are_bounded_and_recover() {
    const TIMEOUT: Duration = Duration::from_secs(2);
    let broker = Kafka::builder().property("auto.create.topics.enable", "false").start();
    let kafka = require!(broker);
    let (log, brokers, topic) = (Log::start(), kafka.brokers(), "quota.exceeded.v1");
    let patient = publisher(&brokers);
    let mut config = config(&brokers);
    config.send_timeout = TIMEOUT;
    let hasty = Publisher::new(&config).unwrap();

    // No topic.
    let error = patient.publish(message(topic, "s", "too early")).await.unwrap_err();
    assert_eq!(error, PublishError::UnknownTopic { topic: topic.into() });
    assert!(error.is_retryable());
    create_topic(&brokers, topic, 3).await;
    patient.publish(message(topic, "s", "first")).await.unwrap();
    until_acknowledged(&hasty, message(topic, "s", "second")).await;

    // No broker.
    kafka.stop();
    for _ in 0..2 {
        let start = Instant::now();
        let error = hasty.publish(message(topic, "s", "lost")).await.unwrap_err();
        assert!(start.elapsed() < TIMEOUT * 10, "{:?}", start.elapsed());
        assert!(matches!(error, PublishError::Unavailable { .. }), "{error}");
    }
    // Each publisher logs it once: a minute has not passed.
    let logged = async {
        while log.count("Kafka error", &brokers) < 2 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, logged).await.unwrap();
    assert_eq!(log.count("Kafka error", &brokers), 2);

    // A call that starts without a broker succeeds with one.
    let (waiting, ()) = tokio::join!(patient.publish(message(topic, "s", "third")), async {
        tokio::task::block_in_place(|| kafka.restart());
    },);
    waiting.unwrap();
    until_acknowledged(&hasty, message(topic, "s", "fourth")).await;
    assert!(log.count("acknowledges messages again", &brokers) >= 2);

    let all = ["first", "second", "third", "fourth"];
    let is_there = |found: &[OwnedMessage], text: &str| found.iter().any(|it| payload(it) == text);
    let found =
        read(&brokers, topic, 3, |found| all.iter().all(|text| is_there(found, text))).await;
    assert_eq!(payload(&found[0]), "first");
    assert!(!is_there(&found, "too early"));
}

async fn until_acknowledged(publisher: &Publisher, message: Message<'_>) {
    let repeat = async { while publisher.publish(message).await.is_err() {} };
    timeout(PATIENCE, repeat).await.unwrap();
}
