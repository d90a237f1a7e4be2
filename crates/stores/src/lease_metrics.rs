use std::sync::Arc;

use headgate_store_leased::Stats;
use prometheus::{
    IntCounter, IntCounterVec, IntGauge, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

use crate::leases::SharedLeases;

/// Collects what was leased, when metrics are scraped.
pub(super) struct LeaseCollector {
    store: Option<Arc<SharedLeases>>,
    held: IntGauge,
}

impl LeaseCollector {
    pub(super) fn new(store: Option<Arc<SharedLeases>>) -> Result<Self, prometheus::Error> {
        let held = IntGauge::new(
            "headgate_lease_units_held",
            "Units that this server took in advance from the store and may still hand out.",
        )?;
        Ok(Self { store, held })
    }

    /// The store counts itself; counters are created for each scrape.
    fn counters(stats: Stats) -> Result<Vec<Box<dyn Collector>>, prometheus::Error> {
        let decisions = Opts::new(
            "headgate_lease_decisions_total",
            "Decisions on a shared store, by source: asked the store, leased units, or a remembered denial.",
        );
        let decisions = IntCounterVec::new(decisions, &["source"])?;
        let sources = [
            ("store", stats.calls),
            ("lease", stats.admitted_locally),
            ("denial", stats.denied_locally),
        ];
        let units = Opts::new(
            "headgate_lease_units_total",
            "Units granted in advance, given back unused, or lost because they came back too late.",
        );
        let units = IntCounterVec::new(units, &["event"])?;
        let events =
            [("granted", stats.granted), ("given_back", stats.given_back), ("lost", stats.lost)];
        for (source, count) in sources {
            decisions.with_label_values(&[source]).inc_by(count);
        }
        for (event, count) in events {
            units.with_label_values(&[event]).inc_by(count);
        }
        let give_backs = IntCounter::new(
            "headgate_lease_give_backs_total",
            "Calls to the store that gave units back.",
        )?;
        give_backs.inc_by(stats.return_calls);
        Ok(vec![Box::new(decisions), Box::new(units), Box::new(give_backs)])
    }
}

impl Collector for LeaseCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.held.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let held = self.store.as_ref().map_or(0, |store| store.held());
        self.held.set(i64::try_from(held).unwrap_or(i64::MAX));
        let stats = self.store.as_ref().map(|store| store.stats()).unwrap_or_default();
        let counters = Self::counters(stats).unwrap_or_default();
        let mut families = self.held.collect();
        families.extend(counters.iter().flat_map(|counter| counter.collect()));
        families
    }
}
