use std::{collections::BTreeMap, sync::Arc, time::Duration};

use headgate::Clock;
use headgate_quota::{Backlog, QuotaEventLog};
use tokio::time;
use tracing::debug;

use crate::{EventMetrics, Events, Shutdown};

/// Measures the undelivered events of every sink, on every replica.
pub(crate) struct Backlogs {
    log: Arc<dyn QuotaEventLog>,
    /// Names of sinks, each with its kind.
    sinks: Vec<(String, &'static str)>,
    metrics: EventMetrics,
    clock: Arc<dyn Clock>,
    shutdown: Shutdown,
}

const INTERVAL: Duration = Duration::from_secs(5);

impl Backlogs {
    pub(crate) fn new(
        events: &Events,
        sinks: Vec<(String, &'static str)>,
        metrics: EventMetrics,
        clock: Arc<dyn Clock>,
        shutdown: Shutdown,
    ) -> Self {
        Self { log: Arc::clone(events.log()), sinks, metrics, clock, shutdown }
    }

    /// Runs until shutdown.
    pub(crate) async fn run(mut self) {
        // Kinds that the configuration before had.
        self.metrics.clear_backlogs();
        if self.sinks.is_empty() {
            return;
        }
        loop {
            self.measure().await;
            tokio::select! {
                () = time::sleep(INTERVAL) => {}
                () = self.shutdown.signalled() => return,
            }
        }
    }

    async fn measure(&self) {
        let mut kinds: BTreeMap<&'static str, Backlog> = BTreeMap::new();
        for (name, kind) in &self.sinks {
            match self.log.backlog(name).await {
                Ok(backlog) => {
                    let sum = kinds.entry(kind).or_default();
                    sum.events += backlog.events;
                    sum.oldest = [sum.oldest, backlog.oldest].into_iter().flatten().min();
                }
                // The gauges keep their values; the publishers log the outage.
                Err(error) => return debug!(%error, "failed to count undelivered events"),
            }
        }
        let now = self.clock.now();
        for (kind, backlog) in kinds {
            let age = backlog.oldest.map_or(0, |oldest| now.since(oldest));
            self.metrics.sink(kind).undelivered(backlog.events, age as f64 / 1e6);
        }
    }
}
