use std::sync::Arc;

use headgate_serve::{Connections, EndReason};
use prometheus::{
    IntCounter, IntCounterVec, IntGauge, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Collects the state of the connections when metrics are scraped.
pub(super) struct ConnectionsCollector {
    connections: Arc<Connections>,
    open: IntGauge,
    buffered: IntGauge,
}

impl ConnectionsCollector {
    pub(super) fn new(connections: Arc<Connections>) -> Result<Self, prometheus::Error> {
        let open = IntGauge::new("headgate_connections", "Connections that are open.")?;
        let buffered = IntGauge::new(
            "headgate_connections_buffered_bytes",
            "Bytes held for clients that have not read their answers or completed their requests.",
        )?;
        Ok(Self { connections, open, buffered })
    }

    /// The connections count themselves; counters are created for each scrape.
    fn counted(&self) -> Option<(IntCounterVec, IntCounter)> {
        let opts = Opts::new(
            "headgate_connections_ended_total",
            "Connections closed by the server: idle, stalled, or to make room for others.",
        );
        let ended = IntCounterVec::new(opts, &["reason"]).ok()?;
        for reason in EndReason::ALL {
            ended.with_label_values(&[reason.name()]).inc_by(self.connections.ended(reason));
        }
        let refused = IntCounter::new(
            "headgate_connections_overflowed_total",
            "Answers and requests that were broken off because too many bytes were buffered.",
        );
        let refused = refused.ok()?;
        refused.inc_by(self.connections.refused());
        Some((ended, refused))
    }
}

impl Collector for ConnectionsCollector {
    fn desc(&self) -> Vec<&Desc> {
        [self.open.desc(), self.buffered.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.open.set(gauge(self.connections.open()));
        self.buffered.set(gauge(self.connections.buffered_bytes()));
        let mut families = [self.open.collect(), self.buffered.collect()].concat();
        if let Some((ended, refused)) = self.counted() {
            families.extend([ended.collect(), refused.collect()].concat());
        }
        families
    }
}
