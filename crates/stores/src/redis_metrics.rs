use std::sync::Arc;

use headgate_store_redis::{NewcomerBound, RedisStore, Status};
use prometheus::{
    Gauge, IntCounter, IntGauge, IntGaugeVec, Opts,
    core::{Collector, Desc},
    proto::MetricFamily,
};

/// Collects the state of the Redis servers when metrics are scraped.
pub(super) struct RedisCollector {
    store: Option<Arc<RedisStore>>,
    newcomers: Option<Arc<NewcomerBound>>,
    servers: IntGaugeVec,
    evicts: IntGauge,
    memory: Gauge,
}

impl RedisCollector {
    pub(super) fn new(
        store: Option<Arc<RedisStore>>,
        newcomers: Option<Arc<NewcomerBound>>,
    ) -> Result<Self, prometheus::Error> {
        let servers = Opts::new("headgate_redis_servers", "Redis servers, by state.");
        Ok(Self {
            store,
            newcomers,
            servers: IntGaugeVec::new(servers, &["state"])?,
            evicts: IntGauge::new(
                "headgate_redis_evicts_counters",
                "1 if the eviction policy of a Redis server may delete counters, otherwise 0.",
            )?,
            memory: Gauge::new(
                "headgate_redis_memory_used_ratio",
                "Share of maxmemory that is in use on the fullest Redis server; 0 without a bound.",
            )?,
        })
    }

    fn update(&self, status: &Status) {
        let away = status.servers.iter().filter(|server| server.error.is_some()).count();
        let state = |name, count| {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.servers.with_label_values(&[name]).set(count);
        };
        state("away", away);
        state("up", status.servers.len() - away);
        self.evicts.set(i64::from(status.eviction().is_some()));
        self.memory.set(status.memory_used_ratio());
    }

    /// The store counts itself; a counter is created for each scrape.
    fn shared(&self) -> Option<IntCounter> {
        let counter = IntCounter::new(
            "headgate_redis_newcomers_shared_total",
            "Checks of new subjects that shared an allowance, past redis.max_new_subjects_per_second.",
        );
        let counter = counter.ok()?;
        counter.inc_by(self.newcomers.as_ref().map_or(0, |newcomers| newcomers.shared()));
        Some(counter)
    }
}

impl Collector for RedisCollector {
    fn desc(&self) -> Vec<&Desc> {
        [self.servers.desc(), self.evicts.desc(), self.memory.desc()].concat()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.update(&self.store.as_ref().map(|store| store.status()).unwrap_or_default());
        let gauges = [self.servers.collect(), self.evicts.collect(), self.memory.collect()];
        let mut families = gauges.concat();
        families.extend(self.shared().iter().flat_map(Collector::collect));
        families
    }
}
