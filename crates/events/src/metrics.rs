use prometheus::{
    Error, GaugeVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, core::Collector,
};

use crate::KafkaConfig;

/// Metrics of event delivery. Clones count together.
#[derive(Clone)]
pub struct EventMetrics {
    delivered: IntCounterVec,
    failures: IntCounterVec,
    given_up: IntCounterVec,
    undelivered: IntGaugeVec,
    oldest: GaugeVec,
    produced: IntCounterVec,
}

/// Metrics of one kind of sink.
#[derive(Clone)]
pub(crate) struct SinkMetrics {
    metrics: EventMetrics,
    kind: &'static str,
}

/// Every kind of sink.
const KINDS: [&str; 2] = ["kafka", "webhook"];

// === impl EventMetrics ===

impl EventMetrics {
    /// Registers the metrics, with a value for every kind of sink and topic.
    ///
    /// # Errors
    ///
    /// When `registry` has metrics of these names already.
    pub fn new(registry: &Registry, kafka: &KafkaConfig) -> Result<Self, Error> {
        let counter = |name: &str, help: &str, label: &str| {
            registered(registry, IntCounterVec::new(Opts::new(name, help), &[label])?)
        };
        let undelivered =
            Opts::new("headgate_events_undelivered", "Undelivered events, by kind of sink.");
        let oldest = Opts::new(
            "headgate_events_oldest_undelivered_age_seconds",
            "Age of the oldest undelivered event, by kind of sink; 0 without one.",
        );
        let metrics = Self {
            delivered: counter(
                "headgate_events_delivered_total",
                "Events delivered by this server, by kind of sink.",
                "sink",
            )?,
            failures: counter(
                "headgate_event_delivery_failures_total",
                "Failed attempts to deliver an event, by kind of sink.",
                "sink",
            )?,
            given_up: counter(
                "headgate_events_given_up_total",
                "Events given up because the receiver kept rejecting them, by kind of sink.",
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
            metrics.sink(kind).begin();
        }
        for topic in [&kafka.topic_exceeded, &kafka.topic_threshold] {
            metrics.produced.with_label_values(&[topic.as_str()]);
        }
        Ok(metrics)
    }

    /// Forgets the undelivered events of every kind of sink.
    pub(crate) fn clear_backlogs(&self) {
        for kind in KINDS {
            self.sink(kind).undelivered(0, 0.0);
        }
    }

    pub(crate) fn sink(&self, kind: &'static str) -> SinkMetrics {
        SinkMetrics { metrics: self.clone(), kind }
    }

    /// Returns the counter of messages that Kafka acknowledged in `topic`.
    #[cfg_attr(not(feature = "kafka"), expect(dead_code, reason = "only Kafka has topics"))]
    pub(crate) fn produced(&self, topic: &str) -> IntCounter {
        self.produced.with_label_values(&[topic])
    }
}

fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

// === impl SinkMetrics ===

impl SinkMetrics {
    /// Creates every series, so that each has a value from the start.
    fn begin(&self) {
        self.delivered(0);
        self.failed(0);
        self.given_up(0);
        self.undelivered(0, 0.0);
    }

    pub(crate) fn delivered(&self, events: usize) {
        self.metrics.delivered.with_label_values(&[self.kind]).inc_by(events as u64);
    }

    pub(crate) fn failed(&self, events: usize) {
        self.metrics.failures.with_label_values(&[self.kind]).inc_by(events as u64);
    }

    pub(crate) fn given_up(&self, events: usize) {
        self.metrics.given_up.with_label_values(&[self.kind]).inc_by(events as u64);
    }

    pub(crate) fn undelivered(&self, events: u64, oldest_seconds: f64) {
        self.metrics.undelivered.with_label_values(&[self.kind]).set(events as i64);
        self.metrics.oldest.with_label_values(&[self.kind]).set(oldest_seconds);
    }
}
