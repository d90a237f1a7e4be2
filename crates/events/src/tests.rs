mod publisher;

use std::sync::Mutex;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_config::{Schema, SectionList};
use headgate_quota::{EventKind, LoggedEvent, QuotaEvent, QuotaPeriod, Subject, SubjectType};
use serde::Deserialize;

use crate::{
    KafkaConfig, WebhookConfig,
    batch::{self, BatchOutcome},
    pass::LogPass,
    sink::{DeliveryError, EventSink},
    webhook_contradictions,
};

/// A configuration with the sections of this crate alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) kafka: KafkaConfig,
    pub(crate) webhooks: Vec<WebhookConfig>,
}

impl Config {
    pub(crate) fn load(
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, String> {
        let validate = |config: &Self| {
            let mut problems = config.kafka.contradictions();
            problems.extend(webhook_contradictions(&config.webhooks));
            problems
        };
        SCHEMA.load(None, environment, validate).map_err(|error| error.to_string())
    }
}

const SCHEMA: Schema = Schema {
    variable_prefix: "HEADGATE__",
    secrets: &["kafka.username", "kafka.password"],
    section_lists: &[SectionList {
        key: "webhooks",
        example: "[{url: 'https://alerts.example/quota', secret_file: /run/secrets/webhook}]",
        secret: Some("secret"),
    }],
};

/// Fails for these events, and records every attempt.
#[derive(Default)]
struct ScriptedSink {
    failing: Vec<(&'static str, DeliveryError)>,
    attempts: Mutex<Vec<String>>,
}

#[async_trait]
impl EventSink for ScriptedSink {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn display_name(&self) -> &'static str {
        "scripted"
    }

    fn concurrency(&self) -> usize {
        1
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        self.attempts.lock().unwrap().push(event.event_id.clone());
        let failing = self.failing.iter().find(|(id, _)| *id == event.event_id);
        failing.map_or(Ok(()), |(_, error)| Err(error.clone()))
    }
}

fn subject(id: &str) -> Subject {
    Subject { kind: SubjectType::Tenant, id: id.to_owned() }
}

fn event(id: &str, subject: Subject) -> QuotaEvent {
    QuotaEvent {
        event_id: id.to_owned(),
        kind: EventKind::Exceeded,
        quota_id: "quota_1".parse().unwrap(),
        subject,
        period: QuotaPeriod::Daily,
        limit: 10,
        used: 10,
        alert_threshold_percent: None,
        at: Timestamp::from_micros(1),
        reset_at: Timestamp::from_micros(2),
    }
}

/// Events called `subject` and a number, in the order of these.
fn batch(ids: &[&str]) -> Vec<LoggedEvent> {
    let logged = |(seq, id): (usize, &&str)| LoggedEvent {
        seq: seq as i64 + 1,
        event: event(id, subject(&id[..1])),
    };
    ids.iter().enumerate().map(logged).collect()
}

#[tokio::test]
async fn a_failed_event_blocks_later_events_of_its_subject_only() {
    let rejected = DeliveryError::Rejected("no".to_owned());
    let sink = ScriptedSink { failing: vec![("a2", rejected.clone())], ..ScriptedSink::default() };
    let mut pass = LogPass::default();
    let failures = vec![(subject("d"), rejected.clone())];
    pass.advance(&[], &BatchOutcome { failures, ..BatchOutcome::default() });
    let events = batch(&["a1", "b1", "d1", "a2", "a3", "b2", "c1"]);
    let outcome = batch::deliver(&sink, &events, &pass, Timestamp::from_micros(9)).await;
    assert_eq!(outcome.delivered, ["a1", "b1", "b2", "c1"]);
    assert_eq!(outcome.failures, [(subject("a"), rejected)]);
    assert!(outcome.given_up.is_empty(), "an old event is not given up at its first attempt");
    assert_eq!(*sink.attempts.lock().unwrap(), ["a1", "a2", "b1", "b2", "c1"]);
}

#[tokio::test]
async fn an_outage_ends_the_batch() {
    let away = DeliveryError::Unavailable("away".to_owned());
    let sink = ScriptedSink { failing: vec![("a1", away.clone())], ..ScriptedSink::default() };
    let events = batch(&["a1", "a2", "b1", "c1"]);
    let outcome =
        batch::deliver(&sink, &events, &LogPass::default(), Timestamp::from_micros(9)).await;
    assert!(outcome.delivered.is_empty());
    assert_eq!(outcome.outage(), Some(&away));
    assert_eq!(outcome.failures, [(subject("a"), away)]);
    assert_eq!(*sink.attempts.lock().unwrap(), ["a1"]);
}
