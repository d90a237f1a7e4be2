//! The export of metrics over OTLP, at an interval.

use std::{sync::Arc, time::Duration};

use headgate_api::Operations;
use headgate_telemetry::metrics::MetricsExporter;
use tokio::time::{self, MissedTickBehavior, timeout};

/// Timeout of the last export when the server stops.
const LAST_EXPORT: Duration = Duration::from_secs(2);

/// Exports the metrics of a server.
pub(super) struct MetricsExport {
    exporter: MetricsExporter,
    operations: Arc<Operations>,
}

impl MetricsExport {
    pub(super) fn new(exporter: MetricsExporter, operations: &Arc<Operations>) -> Self {
        Self { exporter, operations: Arc::clone(operations) }
    }

    /// Exports at the configured interval, for ever.
    pub(super) async fn run(self: Arc<Self>) {
        let mut ticks = time::interval(self.exporter.interval());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.export().await;
        }
    }

    /// Exports the final values, with a short timeout.
    pub(super) async fn finish(&self) {
        let _ = timeout(LAST_EXPORT, self.export()).await;
    }

    async fn export(&self) {
        self.operations.measure().await;
        self.exporter.export(&self.operations.metrics).await;
    }
}
