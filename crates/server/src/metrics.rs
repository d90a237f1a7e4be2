//! What is counted. No label ever holds what a caller sent: identifiers stay out, and so do
//! paths and methods that are not ours. Counting is an atomic addition or two.

mod calls;
mod checks;
mod connections;
mod events;
mod keyed;
mod memory;
mod queries;
mod quotas;
mod redis;
mod requests;
mod rules;
mod store;
mod text;
mod totals;

use std::{collections::HashMap, sync::Arc};

use headgate_envoy::EnvoyMetrics;
use headgate_ratelimit::Catalog;
use headgate_serve::Connections;
use prometheus::{Error, IntGauge, Opts, Registry, TextEncoder, core::Collector};

use self::{
    calls::Calls, checks::Checks, connections::ConnectionsCollector, keyed::Keyed,
    memory::MemoryCollector, redis::RedisCollector, requests::Requests, rules::RulesCollector,
};
use crate::{
    config::Config,
    stores::{StoreKind, Stores},
};

pub(crate) use self::{
    calls::Handled,
    events::{EventNumbers, SinkNumbers},
    queries::Queries,
    quotas::QuotaNumbers,
    requests::Answered,
    store::durations as store_durations,
    text::MetricsText,
    totals::Totals,
};

/// The numbers of one server.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) calls: Calls,
    pub(crate) checks: Checks,
    pub(crate) envoy: EnvoyMetrics,
    pub(crate) events: EventNumbers,
    pub(crate) keyed: Keyed,
    pub(crate) queries: Queries,
    pub(crate) quotas: QuotaNumbers,
    pub(crate) requests: Requests,
    store_up: IntGauge,
}

impl Metrics {
    pub(crate) fn new(
        config: &Config,
        stores: &Stores,
        catalog: Arc<Catalog>,
        connections: Arc<Connections>,
    ) -> Result<Self, Error> {
        let service = HashMap::from([("service".to_owned(), config.app.name.clone())]);
        let registry = Registry::new_custom(None, Some(service))?;
        let capacity = config.memory.capacity.get();
        registry.register(Box::new(MemoryCollector::new(Arc::clone(&stores.memory), capacity)?))?;
        let newcomers = stores.newcomers.clone();
        registry.register(Box::new(RedisCollector::new(stores.redis.clone(), newcomers)?))?;
        registry.register(Box::new(RulesCollector::new(catalog)?))?;
        registry.register(Box::new(ConnectionsCollector::new(connections)?))?;
        registered(&registry, build_info(config)?)?;
        registered(&registry, stores.durations.clone())?;
        Ok(Self {
            calls: Calls::new(&registry)?,
            checks: Checks::new(&registry)?,
            envoy: EnvoyMetrics::new(&registry)?,
            events: EventNumbers::new(&registry, &config.kafka)?,
            keyed: Keyed::new(&registry, &config.app.name)?,
            queries: Queries::new(&registry)?,
            quotas: QuotaNumbers::new(&registry)?,
            requests: Requests::new(&registry)?,
            store_up: registered(&registry, store_up(stores.kind)?)?,
            registry,
        })
    }

    pub(crate) fn store_is(&self, up: bool) {
        self.store_up.set(i64::from(up));
    }

    /// All decisions so far: by rules, by keys, and for Envoy.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.checks.add_to(&mut totals);
        self.keyed.add_to(&mut totals);
        let envoy = self.envoy.totals();
        totals.allowed += envoy.allowed;
        totals.denied += envoy.denied;
        totals.degraded += envoy.degraded;
        totals
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn render(&self) -> Result<String, Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// The metric, once it is part of what is rendered.
fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn build_info(config: &Config) -> Result<IntGauge, Error> {
    let opts = Opts::new("headgate_build_info", "What is running: always 1.")
        .const_label("version", env!("CARGO_PKG_VERSION"))
        .const_label("app_version", &config.app.version)
        .const_label("environment", &config.app.environment);
    let info = IntGauge::with_opts(opts)?;
    info.set(1);
    Ok(info)
}

fn store_up(store: StoreKind) -> Result<IntGauge, Error> {
    let opts = Opts::new("headgate_store_up", "Whether the store answers: 1 or 0.");
    IntGauge::with_opts(opts.const_label("store", store.name()))
}
