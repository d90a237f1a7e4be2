//! Delivers one batch of events: subjects concurrently, the events of each in order.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use futures_util::{StreamExt, stream};
use headgate::Timestamp;
use headgate_quota::{LoggedEvent, QuotaEvent, Subject};

use crate::{
    pass::LogPass,
    sink::{DeliveryError, EventSink},
};

/// The outcome of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchOutcome {
    /// Ids of the delivered events.
    pub(crate) delivered: Vec<String>,
    /// Ids of the events that were rejected once more, and are too old to be kept.
    pub(crate) given_up: Vec<String>,
    /// Subjects whose events failed, each with its first error.
    pub(crate) failures: Vec<(Subject, DeliveryError)>,
    /// True if the sink is unavailable.
    pub(crate) is_outage: bool,
}

/// Detects an outage.
struct Health<'a> {
    is_down: AtomicBool,
    /// Number of [`DeliveryError::Failed`] since the last success.
    failed_in_a_row: &'a AtomicUsize,
}

/// Number of subjects in a row on whose events a sink fails if it is unavailable. Fewer may be due
/// to the events: a receiver can have a defect that one subject triggers.
const MAX_FAILED_IN_A_ROW: usize = 5;

/// Delivers as many events as possible. Skips the events of blocked subjects and those after a
/// failed event of the same subject; after an outage, skips everything. Gives up events from before
/// `keep_from` that the sink keeps rejecting.
pub(crate) async fn deliver(
    sink: &dyn EventSink,
    batch: &[LoggedEvent],
    pass: &LogPass,
    keep_from: Timestamp,
) -> BatchOutcome {
    let is_down = AtomicBool::new(false);
    let health = Health { is_down, failed_in_a_row: pass.failed_in_a_row() };
    let mut deliveries = Vec::new();
    for events in by_subject(batch, pass) {
        let is_persistent = events.first().is_some_and(|it| pass.is_persistent(&it.subject));
        let keep_from = is_persistent.then_some(keep_from);
        deliveries.push(deliver_in_order(sink, events, keep_from, &health));
    }
    let mut ended = stream::iter(deliveries).buffer_unordered(sink.concurrency());
    let mut outcome = BatchOutcome::default();
    while let Some(ended) = ended.next().await {
        outcome.delivered.extend(ended.delivered);
        outcome.given_up.extend(ended.given_up);
        outcome.failures.extend(ended.failures);
    }
    outcome.is_outage = health.is_down.load(Relaxed);
    outcome
}

async fn deliver_in_order(
    sink: &dyn EventSink,
    events: Vec<&QuotaEvent>,
    keep_from: Option<Timestamp>,
    health: &Health<'_>,
) -> BatchOutcome {
    let mut outcome = BatchOutcome::default();
    for event in events {
        if health.is_down.load(Relaxed) {
            break;
        }
        let answer = sink.deliver(event).await;
        health.record(&answer);
        match answer {
            Ok(()) => outcome.delivered.push(event.event_id.clone()),
            Err(DeliveryError::Rejected(_)) if keep_from.is_some_and(|from| event.at < from) => {
                outcome.given_up.push(event.event_id.clone());
            }
            Err(error) => {
                outcome.failures.push((event.subject.clone(), error));
                break;
            }
        }
    }
    outcome
}

// === impl BatchOutcome ===

impl BatchOutcome {
    /// Returns the error that shows the outage, if there is one.
    pub(crate) fn outage(&self) -> Option<&DeliveryError> {
        let is_rejection = |error: &DeliveryError| matches!(error, DeliveryError::Rejected(_));
        let errors = self.failures.iter().rev().map(|(_, error)| error);
        errors.filter(|_| self.is_outage).find(|error| !is_rejection(error))
    }
}

// === impl Health ===

impl Health<'_> {
    fn record(&self, answer: &Result<(), DeliveryError>) {
        let is_down = match answer {
            // Either way, it works.
            Ok(()) | Err(DeliveryError::Rejected(_)) => {
                self.failed_in_a_row.store(0, Relaxed);
                false
            }
            Err(DeliveryError::Failed(_)) => {
                self.failed_in_a_row.fetch_add(1, Relaxed) + 1 >= MAX_FAILED_IN_A_ROW
            }
            Err(DeliveryError::Unavailable(_)) => true,
        };
        self.is_down.fetch_or(is_down, Relaxed);
    }
}

/// Groups the events by subject, in order, without blocked subjects.
fn by_subject<'a>(batch: &'a [LoggedEvent], pass: &LogPass) -> Vec<Vec<&'a QuotaEvent>> {
    let mut groups: Vec<Vec<&QuotaEvent>> = Vec::new();
    let mut indexes = HashMap::new();
    for LoggedEvent { event, .. } in batch {
        if pass.skips(&event.subject) {
            continue;
        }
        let index = *indexes.entry(&event.subject).or_insert(groups.len());
        if index == groups.len() {
            groups.push(Vec::new());
        }
        groups[index].push(event);
    }
    groups
}
