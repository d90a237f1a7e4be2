use std::{num::NonZeroU32, sync::Arc};

use headgate::{BatchLimiter, Breaker, Clock, FailurePolicy, Limit, Replicas, Store};
use headgate_config::Problem;
use headgate_store_leased::LeasedStore;
use headgate_store_memory::MemoryStore;
use headgate_store_redis::{NewcomerBound, RedisStore};
use headgate_telemetry::trace::{DatabaseTracer, TracedStore, Tracer};
use prometheus::Registry;
use thiserror::Error;

use crate::{
    config::{MemoryConfig, RedisConfig},
    kind::StoreKind,
    lease_metrics::LeaseCollector,
    leases::Leases,
    memory_metrics::MemoryCollector,
    metrics,
    probe::Probe,
    redis_metrics::RedisCollector,
};

/// Settings of the stores.
#[derive(Clone, Copy)]
pub struct StoreSettings<'a> {
    /// Bounds of the memory store.
    pub memory: &'a MemoryConfig,
    /// Redis, if it has an address.
    pub redis: &'a RedisConfig,
    /// Replicas that share a limit while Redis is down.
    pub replicas: NonZeroU32,
}

/// The stores of one server.
pub struct Stores {
    /// The store behind the failure policy.
    pub limiter: BatchLimiter,
    /// The store without the failure policy.
    pub probe: Probe,
    /// The store that decides.
    pub kind: StoreKind,
    /// The counters of quotas.
    pub counters: Counters,
    /// The replicas that share limits while the store is down.
    pub replicas: Replicas,
    /// Units that were taken in advance from a shared store.
    pub leases: Leases,
}

/// A store that cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// An address that cannot be used.
    #[error("{0}")]
    Config(Problem),
    /// Metrics that cannot be registered.
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// The counters of quotas: in the same store, without the failure policy.
#[derive(Clone)]
pub struct Counters {
    /// The store.
    pub store: Arc<dyn Store>,
    /// True if other processes share the store.
    pub shared: bool,
    /// The store without the failure policy.
    pub probe: Probe,
}

// === impl Stores ===

impl Stores {
    /// Opens the configured store. Redis may still be down: the failure policy decides until it is
    /// up.
    pub fn open(
        settings: StoreSettings<'_>,
        limit: &Limit,
        clock: Arc<dyn Clock>,
        registry: &Registry,
        tracer: Option<&Tracer>,
    ) -> Result<Self, OpenError> {
        let capacity = settings.memory.capacity.get();
        let memory = MemoryStore::builder()
            .capacity(capacity as usize)
            .overflow_bytes(settings.memory.overflow_bytes.get() as usize);
        let memory = Arc::new(memory.build());
        registry.register(Box::new(MemoryCollector::new(Arc::clone(&memory), capacity)?))?;
        match settings.redis.target().map_err(OpenError::Config)? {
            None => Self::in_memory(memory, settings, limit, registry),
            Some(target) => {
                let spans = tracer.map(|tracer| tracer.database("redis", target.server()));
                let redis = Arc::new(RedisStore::connect(target));
                Self::on_redis(redis, memory, settings, limit, clock, (registry, spans))
            }
        }
    }

    fn in_memory(
        memory: Arc<MemoryStore>,
        settings: StoreSettings<'_>,
        limit: &Limit,
        registry: &Registry,
    ) -> Result<Self, OpenError> {
        let kind = StoreKind::Memory;
        // Register the series of both stores, for dashboards.
        metrics::durations(registry, kind)?;
        registry.register(Box::new(RedisCollector::new(None, None)?))?;
        registry.register(Box::new(LeaseCollector::new(None)?))?;
        let probe = Probe::new(Arc::clone(&memory), limit, metrics::up(registry, kind)?);
        Ok(Self {
            limiter: BatchLimiter::new(Arc::clone(&memory)),
            counters: Counters::new(memory, false, &probe),
            probe,
            kind,
            replicas: settings.replicas.into(),
            leases: Leases::none(),
        })
    }

    fn on_redis(
        redis: Arc<RedisStore>,
        memory: Arc<MemoryStore>,
        settings: StoreSettings<'_>,
        limit: &Limit,
        clock: Arc<dyn Clock>,
        (registry, spans): (&Registry, Option<DatabaseTracer>),
    ) -> Result<Self, OpenError> {
        let kind = StoreKind::Redis;
        let durations = metrics::durations(registry, kind)?;
        // The store has a circuit breaker for each server: this one only measures durations.
        let timed = |store: Arc<dyn Store>| {
            let durations = durations.clone();
            let store = match spans.clone() {
                Some(spans) => Arc::new(TracedStore::new(store, spans)),
                None => store,
            };
            let breaker = Breaker::new(store, Arc::clone(&clock));
            Arc::new(breaker.observe_latency(move |took| durations.observe(took.as_secs_f64())))
        };
        let direct = timed(Arc::clone(&redis) as _);
        let newcomers = settings
            .redis
            .new_subjects_per_second()
            .map(|rate| Arc::new(NewcomerBound::new(Arc::clone(&redis), rate, Arc::clone(&clock))));
        let bounded = newcomers.clone().map(|bound| timed(bound as _));
        let collector = RedisCollector::new(Some(Arc::clone(&redis)), newcomers)?;
        registry.register(Box::new(collector))?;
        let probe = Probe::new(Arc::clone(&direct), limit, metrics::up(registry, kind)?);
        let probe = probe.of_redis(redis);
        let counters = Counters::new(Arc::clone(&direct) as _, true, &probe);
        let shared: Arc<dyn Store> = bounded.unwrap_or(direct);
        let leased = Arc::new(LeasedStore::with_clock(shared, Arc::clone(&clock)));
        registry.register(Box::new(LeaseCollector::new(Some(Arc::clone(&leased)))?))?;
        let replicas = Replicas::from(settings.replicas);
        let policy = FailurePolicy::new(Arc::clone(&leased), memory, replicas.clone(), clock);
        Ok(Self {
            limiter: BatchLimiter::new(policy),
            probe,
            kind,
            counters,
            replicas,
            leases: Leases::of(leased),
        })
    }
}

// === impl Counters ===

impl Counters {
    fn new(store: Arc<dyn Store>, shared: bool, probe: &Probe) -> Self {
        Self { store, shared, probe: probe.clone() }
    }
}
