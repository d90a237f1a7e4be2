use std::sync::{Arc, atomic::Ordering::Relaxed};

use headgate_ratelimit::{Catalog, Snapshot, tally::Tally};
use prometheus::{
    Error, Gauge, IntCounterVec, IntGauge, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Collects the loaded rules and their decisions when metrics are scraped.
pub struct RulesCollector {
    catalog: Arc<Catalog>,
    rules: IntGauge,
    revision: IntGauge,
    age: Gauge,
    database_up: IntGauge,
}

/// The label of the default rule.
const DEFAULT: &str = "default";

/// The label of all rules without a counter of their own.
const OTHERS: &str = "other";

impl RulesCollector {
    /// Creates the metrics of the rules in `catalog`.
    pub fn new(catalog: Arc<Catalog>) -> Result<Self, Error> {
        Ok(Self {
            catalog,
            rules: IntGauge::new("headgate_rules", "Rules in force, enabled or not.")?,
            revision: IntGauge::new("headgate_rules_revision", "Which set of rules is in force.")?,
            age: Gauge::new(
                "headgate_rules_age_seconds",
                "Time since the rules in force were last known to be those in the database; -1 before the first time.",
            )?,
            database_up: IntGauge::new(
                "headgate_database_up",
                "1 if the last read of the database succeeded, otherwise 0.",
            )?,
        })
    }

    /// The rules count themselves; counters are created for each scrape.
    fn decisions(&self) -> Option<IntCounterVec> {
        let opts = Opts::new(
            "headgate_rule_decisions_total",
            "Checks that a rule decided, by its id (default: no rule matched) and outcome.",
        );
        let counters = IntCounterVec::new(opts, &["rule", "outcome"]).ok()?;
        let add = |label: &str, tally: &Tally| {
            counters.with_label_values(&[label, "allowed"]).inc_by(tally.allowed());
            counters.with_label_values(&[label, "denied"]).inc_by(tally.denied());
        };
        let snapshot = self.catalog.load();
        for rule in snapshot.counted() {
            let label = rule.id().map_or_else(|| DEFAULT.to_owned(), |id| id.to_string());
            add(&label, rule.tally());
        }
        let others = snapshot.others();
        if snapshot.len() > Snapshot::MAX_COUNTED || others.allowed() + others.denied() > 0 {
            add(OTHERS, others);
        }
        Some(counters)
    }

    fn reads(&self) -> Option<IntCounterVec> {
        let opts = Opts::new(
            "headgate_rules_read_total",
            "Rules read from the database: those that changed, or all.",
        );
        let counters = IntCounterVec::new(opts, &["how"]).ok()?;
        let reads = self.catalog.reads();
        counters.with_label_values(&["changes"]).inc_by(reads.changed.load(Relaxed));
        counters.with_label_values(&["all"]).inc_by(reads.all.load(Relaxed));
        Some(counters)
    }
}

impl Collector for RulesCollector {
    fn desc(&self) -> Vec<&Desc> {
        [self.rules.desc(), self.revision.desc(), self.age.desc(), self.database_up.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let snapshot = self.catalog.load();
        self.rules.set(snapshot.len() as i64);
        self.revision.set(snapshot.revision().0);
        self.age.set(self.catalog.age().map_or(-1.0, |micros| micros as f64 / 1e6));
        self.database_up.set(i64::from(self.catalog.freshness().error.is_none()));
        let gauges = [self.rules.collect(), self.revision.collect(), self.age.collect()];
        let mut families = gauges.concat();
        families.extend(self.database_up.collect());
        families.extend(self.decisions().iter().flat_map(Collector::collect));
        families.extend(self.reads().iter().flat_map(Collector::collect));
        families
    }
}
