use std::sync::Arc;

use headgate::{
    Batch, BatchLimiter, Check, Cost, InvalidCheck, Key, KeySpace, Limit, Store, StoreError,
};
use headgate_store_redis::RedisStore;
use prometheus::IntGauge;
use thiserror::Error;

/// Probes the store, without the failure policy.
#[derive(Clone)]
pub struct Probe {
    store: BatchLimiter,
    limit: Limit,
    redis: Option<Arc<RedisStore>>,
    up: IntGauge,
}

/// The error of a store that does not answer.
#[derive(Clone, Debug, Error)]
pub enum ProbeError {
    /// The probe itself is invalid.
    #[error(transparent)]
    Check(#[from] InvalidCheck),
    /// The store failed.
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

// === impl Probe ===

impl Probe {
    pub(crate) fn new(store: impl Store + 'static, limit: &Limit, up: IntGauge) -> Self {
        Self { store: BatchLimiter::new(store), limit: limit.clone(), redis: None, up }
    }

    pub(crate) fn of_redis(self, redis: Arc<RedisStore>) -> Self {
        Self { redis: Some(redis), ..self }
    }

    /// Describes the part of the store that is down: of a cluster, the slots.
    pub fn outage(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().outage())
    }

    /// Describes an eviction policy that may delete live counters.
    pub fn eviction(&self) -> Option<String> {
        self.redis.as_ref().and_then(|redis| redis.status().eviction())
    }

    /// Checks that the store answers, and updates `headgate_store_up`.
    pub async fn ask(&self) -> Result<(), ProbeError> {
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
