//! One batch of events: subjects side by side, each subject's events in order.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use futures_util::{StreamExt, stream};
use headgate_quota::{LoggedEvent, QuotaEvent};

use super::sink::{DeliveryError, Sink};

/// What became of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// The ids of what the sink has now.
    pub(super) delivered: Vec<String>,
    /// Why it does not have the others.
    pub(super) failures: Vec<DeliveryError>,
}

/// Delivers what can be. What comes after a failure of the same subject is not tried; after an
/// outage, nothing is.
pub(super) async fn deliver(sink: &dyn Sink, batch: &[LoggedEvent]) -> Round {
    let outage = AtomicBool::new(false);
    let mut lines = Vec::new();
    for line in by_subject(batch) {
        lines.push(deliver_line(sink, line, &outage));
    }
    let mut ended = stream::iter(lines).buffer_unordered(sink.lines());
    let mut round = Round::default();
    while let Some((delivered, failure)) = ended.next().await {
        round.delivered.extend(delivered);
        round.failures.extend(failure);
    }
    round
}

async fn deliver_line(
    sink: &dyn Sink,
    line: Vec<&QuotaEvent>,
    outage: &AtomicBool,
) -> (Vec<String>, Option<DeliveryError>) {
    let mut delivered = Vec::with_capacity(line.len());
    for event in line {
        if outage.load(Relaxed) {
            break;
        }
        if let Err(error) = sink.deliver(event).await {
            outage.fetch_or(error.is_outage(), Relaxed);
            return (delivered, Some(error));
        }
        delivered.push(event.event_id.clone());
    }
    (delivered, None)
}

/// The events of each subject, in their order.
fn by_subject(batch: &[LoggedEvent]) -> Vec<Vec<&QuotaEvent>> {
    let mut lines: Vec<Vec<&QuotaEvent>> = Vec::new();
    let mut places = HashMap::new();
    for LoggedEvent { event, .. } in batch {
        let subject = (event.subject.kind.name(), event.subject.id.as_str());
        let place = *places.entry(subject).or_insert(lines.len());
        if place == lines.len() {
            lines.push(Vec::new());
        }
        lines[place].push(event);
    }
    lines
}
