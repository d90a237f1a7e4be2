use std::{collections::BTreeMap, sync::Arc, time::Duration};

use headgate::Clock;
use headgate_quota::{Backlog, QuotaEventLog};
use tokio::time;
use tracing::debug;

use super::{Events, Stopping};
use crate::metrics::EventNumbers;

/// Counts what sinks do not have yet, every now and then, on every replica.
pub(crate) struct Backlogs {
    log: Arc<dyn QuotaEventLog>,
    /// Names of sinks, with their kinds.
    sinks: Vec<(String, &'static str)>,
    numbers: EventNumbers,
    clock: Arc<dyn Clock>,
    stopping: Stopping,
}

const EVERY: Duration = Duration::from_secs(5);

impl Backlogs {
    pub(super) fn new(
        events: &Events,
        sinks: Vec<(String, &'static str)>,
        numbers: EventNumbers,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { log: Arc::clone(events.log()), sinks, numbers, clock, stopping: events.stopping() }
    }

    /// Goes on until it is told to stop.
    pub(crate) async fn run(mut self) {
        loop {
            self.count().await;
            tokio::select! {
                () = time::sleep(EVERY) => {}
                () = self.stopping.told() => return,
            }
        }
    }

    async fn count(&self) {
        let mut kinds: BTreeMap<&'static str, Backlog> = BTreeMap::new();
        for (name, kind) in &self.sinks {
            match self.log.backlog(name).await {
                Ok(backlog) => {
                    let sum = kinds.entry(kind).or_default();
                    sum.events += backlog.events;
                    sum.oldest = [sum.oldest, backlog.oldest].into_iter().flatten().min();
                }
                // What was known stays known; the publishers tell of the outage.
                Err(error) => return debug!(%error, "Cannot count undelivered events"),
            }
        }
        let now = self.clock.now();
        for (kind, backlog) in kinds {
            let age = backlog.oldest.map_or(0, |oldest| now.since(oldest));
            self.numbers.of(kind).waiting(backlog.events, age as f64 / 1e6);
        }
    }
}
