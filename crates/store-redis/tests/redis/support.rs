//! Stores on servers that the tests start.

use std::{rc::Rc, sync::Arc, time::Duration};

use headgate::{Batch, Check, Cost, Key, Limit, Outcomes, Store, StoreError, Timestamp, Verb};
use headgate_store_conformance::{Fixture, suite};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::Redis;
use tokio::{runtime::Runtime, task::JoinSet};

/// Timeout of tests, which share two cores with the servers.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The same configuration for a busy machine.
pub(crate) fn patient(config: RedisConfig) -> RedisConfig {
    config.timeout(TEST_TIMEOUT).connect_timeout(TEST_TIMEOUT)
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A store on one server, created in `runtime`.
pub(crate) fn store(runtime: &Runtime, url: &str) -> RedisStore {
    let _guard = runtime.enter();
    RedisStore::connect(patient(RedisConfig::from_url(url).unwrap()))
}

/// A store on the cluster of these nodes.
pub(crate) fn cluster_store(runtime: &Runtime, urls: &[String]) -> RedisStore {
    let _guard = runtime.enter();
    RedisStore::connect(patient(RedisConfig::cluster(urls).unwrap()))
}

/// A store as a fixture of the conformance suite.
pub(crate) struct OnRedis {
    pub(crate) store: RedisStore,
    /// The server whose clock can be set.
    pub(crate) clock: Option<Arc<Redis>>,
    pub(crate) key_prefix: &'static str,
    /// `true` if keys of one batch are in different slots.
    pub(crate) is_spread: bool,
}

impl OnRedis {
    pub(crate) fn on_its_own_time(store: RedisStore, key_prefix: &'static str) -> Rc<dyn Fixture> {
        Rc::new(Self { store, clock: None, key_prefix, is_spread: false })
    }

    /// A store on a cluster, with every key in a slot of its own.
    pub(crate) fn spread_over_slots(store: RedisStore) -> Rc<dyn Fixture> {
        Rc::new(Self { store, clock: None, key_prefix: "", is_spread: true })
    }
}

impl Fixture for OnRedis {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn set_time(&self, now: Timestamp) -> bool {
        let Some(redis) = &self.clock else {
            return false;
        };
        redis.clock().set(now.as_micros());
        true
    }

    fn decides_at_once(&self) -> bool {
        !self.is_spread
    }

    fn key_prefix(&self) -> &'static str {
        self.key_prefix
    }
}

/// Several threads of two clients acquire from the same limit.
pub(crate) fn clients_never_get_more_than_the_limit(
    runtime: &Runtime,
    stores: [RedisStore; 2],
    prefix: &'static str,
) {
    let stores = Arc::new(stores);
    suite::never_admits_more_than_the_limit(4, |shot| {
        let mut clients = JoinSet::new();
        for client in 0..4 {
            let stores = Arc::clone(&stores);
            let fire = async move { shot.fire(&stores[client % 2], prefix).await };
            clients.spawn_on(fire, runtime.handle());
        }
        runtime.block_on(clients.join_all()).into_iter().sum()
    });
}

pub(crate) fn per_minute(limit: u64) -> Limit {
    Limit::token_bucket(limit, Duration::from_secs(60)).unwrap()
}

/// So slow that no unit returns while a test runs, also on a busy machine.
pub(crate) fn per_day(limit: u64) -> Limit {
    Limit::token_bucket(limit, Duration::from_hours(24)).unwrap()
}

pub(crate) async fn apply(
    store: &dyn Store,
    verb: Verb,
    names: &[&str],
    limit: &Limit,
) -> Result<Outcomes, StoreError> {
    let check = |name| Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    let batch = Batch::new(names.iter().copied().map(check)).unwrap();
    store.apply(verb, &batch).await
}

pub(crate) async fn acquire(
    store: &dyn Store,
    name: &str,
    limit: &Limit,
) -> Result<Outcomes, StoreError> {
    apply(store, Verb::Acquire, &[name], limit).await
}

/// Retries until the store decides.
pub(crate) async fn acquire_eventually(store: &dyn Store, name: &str, limit: &Limit) -> Outcomes {
    let answered = async {
        loop {
            if let Ok(outcomes) = acquire(store, name, limit).await {
                return outcomes;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(4 * TEST_TIMEOUT, answered).await.expect("the store never came back")
}
