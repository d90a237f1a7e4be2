//! Who keeps the counters, and who answers when that fails.

use std::{fmt, sync::Arc};

use headgate::{
    Batch, Breaker, Check, CheckError, Clock, Cost, FailurePolicy, Key, Limit, Limiter, Space,
    Store, StoreError,
};
use headgate_store_memory::MemoryStore;
use headgate_store_redis::RedisStore;
use prometheus::Histogram;
use thiserror::Error;

use crate::{
    config::{Config, Problem},
    metrics,
};

/// The stores of one server.
pub(crate) struct Stores {
    /// Asks the store, and answers in its place when it fails.
    pub(crate) limiter: Limiter,
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
    store: Limiter,
    limit: Limit,
}

/// Why the store does not answer.
#[derive(Clone, Debug, Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where the server's own subjects are.
const OWN: Space<'static> = Space::new("headgate:", "");

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
        let capacity = config.memory.capacity.get() as usize;
        let memory = Arc::new(MemoryStore::builder().capacity(capacity).build());
        let Some(target) = config.redis.target().map_err(OpenError::Config)? else {
            let probe = Probe::new(Arc::clone(&memory), limit);
            return Ok(Self {
                limiter: Limiter::new(Arc::clone(&memory)),
                counters: Counters::new(Arc::clone(&memory) as _, false, &probe),
                probe,
                memory,
                kind: StoreKind::Memory,
                durations: metrics::store_durations(StoreKind::Memory)?,
            });
        };
        let durations = metrics::store_durations(StoreKind::Redis)?;
        let times = durations.clone();
        let redis = Breaker::new(RedisStore::connect(target), Arc::clone(&clock))
            .observed(move |took| times.observe(took.as_secs_f64()));
        let redis = Arc::new(redis);
        let probe = Probe::new(Arc::clone(&redis), limit);
        let counters = Counters::new(Arc::clone(&redis) as _, true, &probe);
        let replicas = config.ratelimit.replicas();
        let policy = FailurePolicy::new(redis, Arc::clone(&memory), replicas, clock);
        let limiter = Limiter::new(policy);
        Ok(Self { limiter, probe, memory, kind: StoreKind::Redis, counters, durations })
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
        Self { store: Limiter::new(store), limit: limit.clone() }
    }

    /// Asks the store something that changes nothing.
    pub(crate) async fn ask(&self) -> Result<(), ProbeError> {
        let check = Check::new(PROBED, &self.limit, Cost::ONE)?;
        self.store.peek(&Batch::from(check)).await?;
        Ok(())
    }
}
