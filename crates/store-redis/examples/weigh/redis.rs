//! Bytes per key in Redis.

use std::{error::Error, time::Duration};

use headgate::{Algorithm, Check, Cost, Key, Store, Verb};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::Redis;
use tokio::runtime::Runtime;

use crate::roomy;

/// A key as the server names it.
const KEY: &str = "ratelimit:user:user-001:86400";

/// A Redis server that reports the memory of a key.
pub(crate) struct Scales {
    redis: Redis,
    runtime: Runtime,
    store: RedisStore,
}

// === impl Scales ===

impl Scales {
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        let redis = Redis::start()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let config = RedisConfig::from_url(&redis.url())?.timeout(Duration::from_secs(10));
        let store = {
            let _guard = runtime.enter();
            RedisStore::connect(config)
        };
        Ok(Self { redis, runtime, store })
    }

    /// Memory of a key including its name, with `admitted` requests.
    pub(crate) fn bytes_of_key(
        &self,
        algorithm: Algorithm,
        admitted: usize,
    ) -> Result<usize, Box<dyn Error>> {
        let limit = roomy(algorithm)?;
        self.redis.cli(&["FLUSHALL"]);
        for _ in 0..admitted {
            let check = Check::new(Key::new(KEY)?, &limit, Cost::ONE)?.into();
            let outcomes = self.runtime.block_on(self.store.apply(Verb::Acquire, &check))?;
            assert!(outcomes[0].allowed, "the limit is roomy");
        }
        Ok(self.redis.cli(&["MEMORY", "USAGE", KEY, "SAMPLES", "0"]).parse()?)
    }
}
