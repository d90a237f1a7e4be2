//! Receivers of events.

#[cfg(feature = "kafka")]
mod kafka;
mod webhook;

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Clock;
use headgate_config::Problem;
use headgate_quota::QuotaEvent;
use thiserror::Error;

use self::webhook::Webhook;
use crate::{EventMetrics, EventsConfig};

/// A receiver of events.
#[async_trait]
pub(crate) trait EventSink: Send + Sync {
    /// Name under which deliveries are recorded: the same on every replica and after every restart.
    fn name(&self) -> &str;

    /// Kind of sink, for metrics.
    fn kind(&self) -> &'static str;

    /// Name in logs and in the API.
    fn display_name(&self) -> &str;

    /// Number of subjects whose events are delivered concurrently.
    fn concurrency(&self) -> usize;

    /// Delivers one event, if the receiver subscribed to it; returns once it is durable, or timed
    /// out.
    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError>;
}

/// A failed delivery. It is retried later.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum DeliveryError {
    /// The sink is unavailable, for every event.
    #[error("{0}")]
    Unavailable(String),
    /// The sink failed on this event: it may be unavailable, or accept others.
    #[error("{0}")]
    Failed(String),
    /// The sink rejected this event; it may accept others.
    #[error("{0}")]
    Rejected(String),
}

/// Creates every sink of `config`.
pub(crate) fn all(
    config: EventsConfig<'_>,
    metrics: &EventMetrics,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Box<dyn EventSink>>, Problem> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    #[cfg(feature = "kafka")]
    if config.kafka.is_used() {
        sinks.push(Box::new(kafka::KafkaSink::new(config.kafka, metrics)?));
    }
    #[cfg(not(feature = "kafka"))]
    let _ = metrics;
    for (index, webhook) in config.webhooks.iter().enumerate() {
        let webhook = Webhook::new(webhook, Arc::clone(clock));
        sinks.push(Box::new(webhook.map_err(|error| webhook::unusable(index, &error))?));
    }
    Ok(sinks)
}
