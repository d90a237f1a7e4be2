use std::sync::Arc;

use headgate_store_memory::MemoryStore;
use prometheus::{
    IntCounter, IntGauge,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Collects the size of the memory store when metrics are scraped.
pub(super) struct MemoryCollector {
    memory: Arc<MemoryStore>,
    capacity: IntGauge,
    used: IntGauge,
}

impl MemoryCollector {
    pub(super) fn new(memory: Arc<MemoryStore>, capacity: u64) -> Result<Self, prometheus::Error> {
        let slots = IntGauge::new(
            "headgate_memory_slots",
            "Subjects that the memory store can tell apart.",
        )?;
        slots.set(i64::try_from(capacity).unwrap_or(i64::MAX));
        let used = IntGauge::new(
            "headgate_memory_slots_used",
            "Slots of the memory store that are in use.",
        )?;
        Ok(Self { memory, capacity: slots, used })
    }

    /// The store counts itself; a counter is created for each scrape.
    fn overflowed(&self) -> Option<IntCounter> {
        let counter = IntCounter::new(
            "headgate_memory_overflowed_total",
            "Decisions about new subjects that shared buckets because the memory store was full.",
        );
        let counter = counter.ok()?;
        counter.inc_by(self.memory.overflowed());
        Some(counter)
    }
}

impl Collector for MemoryCollector {
    fn desc(&self) -> Vec<&Desc> {
        [self.capacity.desc(), self.used.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.used.set(i64::try_from(self.memory.len()).unwrap_or(i64::MAX));
        let mut families = [self.capacity.collect(), self.used.collect()].concat();
        families.extend(self.overflowed().iter().flat_map(Collector::collect));
        families
    }
}
