//! Delivers one batch of events: subjects concurrently, the events of each in order.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use futures_util::{StreamExt, stream};
use headgate_quota::{LoggedEvent, QuotaEvent, Subject};

use crate::sink::{DeliveryError, EventSink};

/// The outcome of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchOutcome {
    /// Ids of the delivered events.
    pub(crate) delivered: Vec<String>,
    /// Subjects whose events failed, each with its first error.
    pub(crate) failures: Vec<(Subject, DeliveryError)>,
}

/// Delivers as many events as possible. Skips the events of `blocked` subjects and those after a
/// failed event of the same subject; after an outage, skips everything.
pub(crate) async fn deliver(
    sink: &dyn EventSink,
    batch: &[LoggedEvent],
    blocked: &HashSet<Subject>,
) -> BatchOutcome {
    let outage = AtomicBool::new(false);
    let mut deliveries = Vec::new();
    for events in by_subject(batch, blocked) {
        deliveries.push(deliver_in_order(sink, events, &outage));
    }
    let mut ended = stream::iter(deliveries).buffer_unordered(sink.concurrency());
    let mut outcome = BatchOutcome::default();
    while let Some((delivered, failure)) = ended.next().await {
        outcome.delivered.extend(delivered);
        outcome.failures.extend(failure);
    }
    outcome
}

async fn deliver_in_order(
    sink: &dyn EventSink,
    events: Vec<&QuotaEvent>,
    outage: &AtomicBool,
) -> (Vec<String>, Option<(Subject, DeliveryError)>) {
    let mut delivered = Vec::with_capacity(events.len());
    for event in events {
        if outage.load(Relaxed) {
            break;
        }
        if let Err(error) = sink.deliver(event).await {
            outage.fetch_or(error.is_outage(), Relaxed);
            return (delivered, Some((event.subject.clone(), error)));
        }
        delivered.push(event.event_id.clone());
    }
    (delivered, None)
}

/// Groups the events by subject, in order, without blocked subjects.
fn by_subject<'a>(
    batch: &'a [LoggedEvent],
    blocked: &HashSet<Subject>,
) -> Vec<Vec<&'a QuotaEvent>> {
    let mut groups: Vec<Vec<&QuotaEvent>> = Vec::new();
    let mut indexes = HashMap::new();
    for LoggedEvent { event, .. } in batch {
        if blocked.contains(&event.subject) {
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
