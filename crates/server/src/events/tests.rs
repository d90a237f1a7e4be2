mod publisher;

use std::{collections::HashSet, sync::Mutex};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{EventKind, LoggedEvent, QuotaEvent, QuotaPeriod, Subject, SubjectType};

use super::{
    round,
    sink::{DeliveryError, Sink},
};

/// Takes what is not to fail, and remembers what it was told of.
#[derive(Default)]
struct Scripted {
    failing: Vec<(&'static str, DeliveryError)>,
    told: Mutex<Vec<String>>,
}

#[async_trait]
impl Sink for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn kind(&self) -> &'static str {
        "webhook"
    }

    fn shown(&self) -> &'static str {
        "scripted"
    }

    fn lines(&self) -> usize {
        1
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        self.told.lock().unwrap().push(event.event_id.clone());
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
async fn each_subject_is_told_of_in_its_order_and_one_that_fails_holds_up_itself_alone() {
    let refused = DeliveryError::Refused("no".to_owned());
    let sink = Scripted { failing: vec![("a2", refused.clone())], ..Scripted::default() };
    let held_up = HashSet::from([subject("d")]);
    let batch = batch(&["a1", "b1", "d1", "a2", "a3", "b2", "c1"]);
    let round = round::deliver(&sink, &batch, &held_up).await;
    assert_eq!(round.delivered, ["a1", "b1", "b2", "c1"]);
    assert_eq!(round.failures, [(subject("a"), refused)]);
    assert_eq!(*sink.told.lock().unwrap(), ["a1", "a2", "b1", "b2", "c1"]);
}

#[tokio::test]
async fn after_an_outage_nothing_else_is_tried() {
    let away = DeliveryError::Unavailable("away".to_owned());
    let sink = Scripted { failing: vec![("a1", away.clone())], ..Scripted::default() };
    let batch = batch(&["a1", "a2", "b1", "c1"]);
    let round = round::deliver(&sink, &batch, &HashSet::new()).await;
    assert!(round.delivered.is_empty());
    assert_eq!(round.failures, [(subject("a"), away)]);
    assert_eq!(*sink.told.lock().unwrap(), ["a1"]);
}
