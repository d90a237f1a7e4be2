//! One batch of events: subjects side by side, each subject's events in order.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use futures_util::{StreamExt, stream};
use headgate_quota::{LoggedEvent, QuotaEvent, Subject};

use super::sink::{DeliveryError, Sink};

/// What became of a batch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Round {
    /// The ids of what the sink has now.
    pub(super) delivered: Vec<String>,
    /// Whose events it does not have all of, and why.
    pub(super) failures: Vec<(Subject, DeliveryError)>,
}

/// Delivers what can be. Nothing is tried of the subjects that are held up, and nothing that comes after
/// a failure of the same subject; after an outage, nothing is.
pub(super) async fn deliver(
    sink: &dyn Sink,
    batch: &[LoggedEvent],
    held_up: &HashSet<Subject>,
) -> Round {
    let outage = AtomicBool::new(false);
    let mut lines = Vec::new();
    for line in by_subject(batch, held_up) {
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
) -> (Vec<String>, Option<(Subject, DeliveryError)>) {
    let mut delivered = Vec::with_capacity(line.len());
    for event in line {
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

/// The events of each subject that is not held up, in their order.
fn by_subject<'a>(
    batch: &'a [LoggedEvent],
    held_up: &HashSet<Subject>,
) -> Vec<Vec<&'a QuotaEvent>> {
    let mut lines: Vec<Vec<&QuotaEvent>> = Vec::new();
    let mut places = HashMap::new();
    for LoggedEvent { event, .. } in batch {
        if held_up.contains(&event.subject) {
            continue;
        }
        let place = *places.entry(&event.subject).or_insert(lines.len());
        if place == lines.len() {
            lines.push(Vec::new());
        }
        lines[place].push(event);
    }
    lines
}
