use prometheus::{Error, GaugeVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::registered;
use crate::config::KafkaConfig;

/// How events are delivered. Clones count together.
#[derive(Clone)]
pub(crate) struct EventNumbers {
    delivered: IntCounterVec,
    failures: IntCounterVec,
    undelivered: IntGaugeVec,
    oldest: GaugeVec,
    produced: IntCounterVec,
}

/// Those of one kind of sink.
#[derive(Clone)]
pub(crate) struct SinkNumbers {
    numbers: EventNumbers,
    kind: &'static str,
}

/// The kinds of sinks.
const KINDS: [&str; 2] = ["kafka", "webhook"];

// === impl EventNumbers ===

impl EventNumbers {
    pub(crate) fn new(registry: &Registry, kafka: &KafkaConfig) -> Result<Self, Error> {
        let counter = |name: &str, help: &str, label: &str| {
            registered(registry, IntCounterVec::new(Opts::new(name, help), &[label])?)
        };
        let undelivered = Opts::new(
            "headgate_events_undelivered",
            "Events that a sink does not have yet, by its kind.",
        );
        let oldest = Opts::new(
            "headgate_events_oldest_undelivered_age_seconds",
            "Time since the oldest of these happened; 0 where there is none.",
        );
        let numbers = Self {
            delivered: counter(
                "headgate_events_delivered_total",
                "Events that this server delivered, by the kind of sink.",
                "sink",
            )?,
            failures: counter(
                "headgate_event_delivery_failures_total",
                "Attempts to deliver an event that failed, by the kind of sink.",
                "sink",
            )?,
            undelivered: registered(registry, IntGaugeVec::new(undelivered, &["sink"])?)?,
            oldest: registered(registry, GaugeVec::new(oldest, &["sink"])?)?,
            produced: counter(
                "kafka_messages_produced_total",
                "Messages that Kafka acknowledged, by topic.",
                "topic",
            )?,
        };
        for kind in KINDS {
            numbers.of(kind).begin();
        }
        for topic in [&kafka.topic_exceeded, &kafka.topic_threshold] {
            numbers.produced.with_label_values(&[topic.as_str()]);
        }
        Ok(numbers)
    }

    /// Those of one kind of sink.
    pub(crate) fn of(&self, kind: &'static str) -> SinkNumbers {
        SinkNumbers { numbers: self.clone(), kind }
    }

    /// How many messages Kafka acknowledged in a topic.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "nothing is produced"))]
    pub(crate) fn produced(&self, topic: &str) -> IntCounter {
        self.produced.with_label_values(&[topic])
    }
}

// === impl SinkNumbers ===

impl SinkNumbers {
    /// There is a number from the beginning.
    fn begin(&self) {
        self.delivered(0);
        self.failed(0);
        self.waiting(0, 0.0);
    }

    pub(crate) fn delivered(&self, events: usize) {
        self.numbers.delivered.with_label_values(&[self.kind]).inc_by(events as u64);
    }

    pub(crate) fn failed(&self, events: usize) {
        self.numbers.failures.with_label_values(&[self.kind]).inc_by(events as u64);
    }

    pub(crate) fn waiting(&self, events: u64, oldest_seconds: f64) {
        self.numbers.undelivered.with_label_values(&[self.kind]).set(events as i64);
        self.numbers.oldest.with_label_values(&[self.kind]).set(oldest_seconds);
    }
}
