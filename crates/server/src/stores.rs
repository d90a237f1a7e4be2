//! The store of counters, and the failure policy around it.

mod memory_metrics;
mod metrics;
mod redis_metrics;

use std::{fmt, num::NonZeroU32, sync::Arc};

use headgate::{
    Batch, BatchLimiter, Breaker, Check, Clock, Cost, FailurePolicy, InvalidCheck, Key, KeySpace,
    Limit, Store, StoreError,
};
use headgate_config::Problem;
use headgate_store_memory::MemoryStore;
use headgate_store_redis::{NewcomerBound, RedisStore};
use prometheus::{IntGauge, Registry};
use thiserror::Error;

use self::{memory_metrics::MemoryCollector, redis_metrics::RedisCollector};
use crate::config::{MemoryConfig, RedisConfig};

/// Settings of the stores.
#[derive(Clone, Copy)]
pub(crate) struct StoreSettings<'a> {
    pub(crate) memory: &'a MemoryConfig,
    pub(crate) redis: &'a RedisConfig,
    /// Replicas that share a limit while Redis is down.
    pub(crate) replicas: NonZeroU32,
}

/// The stores of one server.
pub(crate) struct Stores {
    /// The store behind the failure policy.
    pub(crate) limiter: BatchLimiter,
    /// The store without the failure policy.
    pub(crate) probe: Probe,
    /// The store that decides.
    pub(crate) kind: StoreKind,
    /// The counters of quotas.
    pub(crate) counters: Counters,
}

/// A store that cannot be opened.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error("{0}")]
    Config(Problem),
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// The counters of quotas: in the same store, without the failure policy.
#[derive(Clone)]
pub(crate) struct Counters {
    pub(crate) store: Arc<dyn Store>,
    /// True if other processes share the store.
    pub(crate) shared: bool,
    /// The store without the failure policy.
    pub(crate) probe: Probe,
}

/// The store that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Memory of this process.
    Memory,
    /// Redis, shared with other processes.
    Redis,
}

/// Probes the store.
#[derive(Clone)]
pub(crate) struct Probe {
    store: BatchLimiter,
    limit: Limit,
    redis: Option<Arc<RedisStore>>,
    up: IntGauge,
}

/// The error of a store that does not answer.
#[derive(Clone, Debug, Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The key space of the server's own subjects.
const OWN: KeySpace<'static> = KeySpace::new("headgate:", "");

/// A subject that is never charged: a peek changes nothing.
const PROBED: Key<'static> = match Key::new("probe") {
    Ok(key) => key.within(&OWN),
    Err(_) => panic!("not a key"),
};

// === impl Stores ===

impl Stores {
    /// Opens the configured store. Redis may still be down: the failure policy decides until it is
    /// up.
    pub(crate) fn open(
        settings: StoreSettings<'_>,
        limit: &Limit,
        clock: Arc<dyn Clock>,
        registry: &Registry,
    ) -> Result<Self, OpenError> {
        let capacity = settings.memory.capacity.get();
        let memory = MemoryStore::builder()
            .capacity(capacity as usize)
            .overflow_bytes(settings.memory.overflow_bytes.get() as usize);
        let memory = Arc::new(memory.build());
        registry.register(Box::new(MemoryCollector::new(Arc::clone(&memory), capacity)?))?;
        match settings.redis.target().map_err(OpenError::Config)? {
            None => Self::in_memory(memory, limit, registry),
            Some(target) => {
                let redis = Arc::new(RedisStore::connect(target));
                Self::on_redis(redis, memory, settings, limit, clock, registry)
            }
        }
    }

    fn in_memory(
        memory: Arc<MemoryStore>,
        limit: &Limit,
        registry: &Registry,
    ) -> Result<Self, OpenError> {
        let kind = StoreKind::Memory;
        // Register the series of both stores, for dashboards.
        metrics::durations(registry, kind)?;
        registry.register(Box::new(RedisCollector::new(None, None)?))?;
        let probe = Probe::new(Arc::clone(&memory), limit, metrics::up(registry, kind)?);
        Ok(Self {
            limiter: BatchLimiter::new(Arc::clone(&memory)),
            counters: Counters::new(memory, false, &probe),
            probe,
            kind,
        })
    }

    fn on_redis(
        redis: Arc<RedisStore>,
        memory: Arc<MemoryStore>,
        settings: StoreSettings<'_>,
        limit: &Limit,
        clock: Arc<dyn Clock>,
        registry: &Registry,
    ) -> Result<Self, OpenError> {
        let kind = StoreKind::Redis;
        let durations = metrics::durations(registry, kind)?;
        // The store has a circuit breaker for each server: this one only measures durations.
        let timed = |store: Arc<dyn Store>| {
            let durations = durations.clone();
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
        let mut probe = Probe::new(Arc::clone(&direct), limit, metrics::up(registry, kind)?);
        probe.redis = Some(redis);
        let counters = Counters::new(Arc::clone(&direct) as _, true, &probe);
        let primary = bounded.unwrap_or(direct);
        let limiter =
            BatchLimiter::new(FailurePolicy::new(primary, memory, settings.replicas, clock));
        Ok(Self { limiter, probe, kind, counters })
    }
}

// === impl Counters ===

impl Counters {
    fn new(store: Arc<dyn Store>, shared: bool, probe: &Probe) -> Self {
        Self { store, shared, probe: probe.clone() }
    }
}

// === impl StoreKind ===

impl StoreKind {
    /// The name in logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Probe ===

impl Probe {
    fn new(store: impl Store + 'static, limit: &Limit, up: IntGauge) -> Self {
        Self { store: BatchLimiter::new(store), limit: limit.clone(), redis: None, up }
    }

    /// Describes the part of the store that is down: of a cluster, the slots.
    pub(crate) fn outage(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().outage())
    }

    /// Describes an eviction policy that may delete live counters.
    pub(crate) fn eviction(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().eviction())
    }

    /// Checks that the store answers, and updates `headgate_store_up`.
    pub(crate) async fn ask(&self) -> Result<(), ProbeError> {
        let answer = self.peek().await;
        self.up.set(i64::from(answer.is_ok()));
        answer
    }

    /// Peeks at a key, which changes nothing.
    async fn peek(&self) -> Result<(), ProbeError> {
        let check = Check::new(PROBED, &self.limit, Cost::ONE)?;
        self.store.peek(&Batch::from(check)).await?;
        Ok(())
    }
}
