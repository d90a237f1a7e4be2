//! Who keeps the counters, and who answers when that fails.

use std::{fmt, sync::Arc};

use headgate::{
    Batch, BatchLimiter, Breaker, Check, Clock, Cost, FailurePolicy, InvalidCheck, Key, KeySpace,
    Limit, Store, StoreError,
};
use headgate_config::Problem;
use headgate_store_memory::MemoryStore;
use headgate_store_redis::{NewcomerBound, RedisStore};
use prometheus::Histogram;
use thiserror::Error;

use crate::{config::Config, metrics};

/// The stores of one server.
pub(crate) struct Stores {
    /// Asks the store, and answers in its place when it fails.
    pub(crate) limiter: BatchLimiter,
    /// Asks the store itself.
    pub(crate) probe: Probe,
    /// This process's own memory.
    pub(crate) memory: Arc<MemoryStore>,
    /// Which store decides.
    pub(crate) kind: StoreKind,
    /// Where quotas are counted.
    pub(crate) counters: Counters,
    /// How long calls took that left the process.
    pub(crate) durations: Histogram,
    /// Redis, where it is used.
    pub(crate) redis: Option<Arc<RedisStore>>,
    /// The bound on new subjects in Redis, where there is one.
    pub(crate) newcomers: Option<Arc<NewcomerBound>>,
}

/// Why there are no stores.
#[derive(Debug, Error)]
pub(crate) enum OpenError {
    #[error("{0}")]
    Config(Problem),
    #[error(transparent)]
    Metrics(#[from] prometheus::Error),
}

/// Where quotas are counted: in the same store, whose failures nobody answers for.
pub(crate) struct Counters {
    pub(crate) store: Arc<dyn Store>,
    /// Whether other processes count there too.
    pub(crate) shared: bool,
    /// Asks the store itself.
    pub(crate) probe: Probe,
}

/// Which store decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// This process, alone.
    Memory,
    /// Redis, together with every process that uses the same one.
    Redis,
}

/// Finds out whether the store answers.
#[derive(Clone)]
pub(crate) struct Probe {
    store: BatchLimiter,
    limit: Limit,
    redis: Option<Arc<RedisStore>>,
}

/// Why the store does not answer.
#[derive(Clone, Debug, Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the server's own subjects are.
const OWN: KeySpace<'static> = KeySpace::new("headgate:", "");

/// A subject that nobody has: looking at it changes nothing.
const PROBED: Key<'static> = match Key::new("probe") {
    Ok(key) => key.within(&OWN),
    Err(_) => panic!("not a key"),
};

// === impl Stores ===

impl Stores {
    /// Opens the store that `config` names. Redis need not be there yet: until it is,
    /// the failure policy answers.
    pub(crate) fn open(
        config: &Config,
        limit: &Limit,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, OpenError> {
        let memory = MemoryStore::builder()
            .capacity(config.memory.capacity.get() as usize)
            .overflow_bytes(config.memory.overflow_bytes.get() as usize);
        let memory = Arc::new(memory.build());
        let Some(target) = config.redis.target().map_err(OpenError::Config)? else {
            let probe = Probe::new(Arc::clone(&memory), limit);
            return Ok(Self {
                limiter: BatchLimiter::new(Arc::clone(&memory)),
                counters: Counters::new(Arc::clone(&memory) as _, false, &probe),
                probe,
                memory,
                kind: StoreKind::Memory,
                durations: metrics::store_durations(StoreKind::Memory)?,
                redis: None,
                newcomers: None,
            });
        };
        let durations = metrics::store_durations(StoreKind::Redis)?;
        let redis = Arc::new(RedisStore::connect(target));
        // The store has breakers of its own, one for each server: this one only keeps the time.
        let observed = |store: Arc<dyn Store>| {
            let durations = durations.clone();
            let breaker = Breaker::new(store, Arc::clone(&clock));
            Arc::new(breaker.observe_latency(move |took| durations.observe(took.as_secs_f64())))
        };
        let direct = observed(Arc::clone(&redis) as _);
        let newcomers = config
            .redis
            .new_subjects_per_second()
            .map(|rate| Arc::new(NewcomerBound::new(Arc::clone(&redis), rate, Arc::clone(&clock))));
        let bounded = newcomers.clone().map(|bound| observed(bound as _));
        let mut probe = Probe::new(Arc::clone(&direct), limit);
        probe.redis = Some(Arc::clone(&redis));
        let counters = Counters::new(Arc::clone(&direct) as _, true, &probe);
        let replicas = config.ratelimit.replicas();
        let primary = bounded.unwrap_or(direct);
        let policy = FailurePolicy::new(primary, Arc::clone(&memory), replicas, clock);
        let limiter = BatchLimiter::new(policy);
        let (kind, redis) = (StoreKind::Redis, Some(redis));
        Ok(Self { limiter, probe, memory, kind, counters, durations, redis, newcomers })
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
    fn new(store: impl Store + 'static, limit: &Limit) -> Self {
        Self { store: BatchLimiter::new(store), limit: limit.clone(), redis: None }
    }

    /// What of the store is away, in a sentence: of a cluster, which slots.
    pub(crate) fn outage(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().outage())
    }

    /// What may delete counters that still count, in a sentence.
    pub(crate) fn eviction(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().eviction())
    }

    /// Asks the store something that changes nothing.
    pub(crate) async fn ask(&self) -> Result<(), ProbeError> {
        let check = Check::new(PROBED, &self.limit, Cost::ONE)?;
        self.store.peek(&Batch::from(check)).await?;
        Ok(())
    }
}
