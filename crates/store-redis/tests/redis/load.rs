//! Load that continues while servers fail, and its results.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{Limit, StoreError};
use headgate_store_redis::RedisStore;
use headgate_testkit::wait_until;
use tokio::{runtime::Runtime, task::JoinSet};

use crate::support::acquire;

/// Timeout of conditions that are certain to come true.
const SOON: Duration = Duration::from_mins(5);

/// Clients that acquire units of some keys until they are stopped.
pub(crate) struct Load {
    log: Arc<Log>,
    callers: JoinSet<()>,
}

/// Results of all calls.
#[derive(Default)]
pub(crate) struct Results {
    /// Number of the unit of each admission, from 1.
    pub(crate) admitted: HashMap<&'static str, Vec<u64>>,
    pub(crate) denied: HashMap<&'static str, u64>,
    pub(crate) errors: Vec<StoreError>,
}

#[derive(Default)]
struct Log {
    told: Mutex<Results>,
    stopped: AtomicBool,
}

impl Load {
    /// Number of clients. Each has one call in flight, so at most this many replies are late.
    pub(crate) const CALLERS: u64 = 8;

    /// Starts to acquire units of `keys`, each of which has `limit` units and no refill.
    pub(crate) fn start(
        runtime: &Runtime,
        store: RedisStore,
        keys: &'static [&'static str],
        limit: u64,
    ) -> Self {
        let (store, log) = (Arc::new(store), Arc::new(Log::default()));
        let mut callers = JoinSet::new();
        for _ in 0..Self::CALLERS {
            let (store, log) = (Arc::clone(&store), Arc::clone(&log));
            callers.spawn_on(async move { log.ask(&store, keys, limit).await }, runtime.handle());
        }
        Self { log, callers }
    }

    /// Waits until the results satisfy a condition.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, told: impl Fn(&Results) -> bool) {
        let came_about = wait_until(SOON, || told(&self.log.told.lock().unwrap()));
        assert!(came_about, "{what}: not within {SOON:?}");
    }

    /// The results so far.
    pub(crate) fn so_far<T>(&self, told: impl Fn(&Results) -> T) -> T {
        told(&self.log.told.lock().unwrap())
    }

    /// Stops the clients. Returns all results.
    pub(crate) fn stop(self, runtime: &Runtime) -> Results {
        self.log.stopped.store(true, Relaxed);
        runtime.block_on(self.callers.join_all());
        std::mem::take(&mut self.log.told.lock().unwrap())
    }
}

impl Log {
    async fn ask(&self, store: &RedisStore, keys: &[&'static str], limit: u64) {
        let a_year = Duration::from_hours(24 * 366);
        let window = Limit::fixed_window(limit, a_year).unwrap();
        while !self.stopped.load(Relaxed) {
            for key in keys {
                let answer = acquire(store, key, &window).await.map(|outcomes| outcomes[0]);
                let mut told = self.told.lock().unwrap();
                match answer {
                    Ok(outcome) if outcome.allowed => {
                        told.admitted.entry(key).or_default().push(limit - outcome.remaining);
                    }
                    Ok(_) => *told.denied.entry(key).or_default() += 1,
                    Err(error) => told.errors.push(error),
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Results {
    /// Number of decisions about `key`.
    pub(crate) fn answers(&self, key: &str) -> u64 {
        self.admissions(key) + self.denials(key)
    }

    pub(crate) fn denials(&self, key: &str) -> u64 {
        self.denied.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn admissions(&self, key: &str) -> u64 {
        self.admitted.get(key).map_or(0, |admitted| admitted.len() as u64)
    }

    /// The units of `key` that were admitted this many times, in order.
    pub(crate) fn given(&self, key: &str, times: usize) -> Vec<u64> {
        let mut counts = HashMap::new();
        for unit in self.admitted.get(key).into_iter().flatten() {
            *counts.entry(*unit).or_insert(0) += 1;
        }
        let mut units: Vec<u64> =
            counts.into_iter().filter(|(_, n)| *n == times).map(|(unit, _)| unit).collect();
        units.sort_unstable();
        units
    }
}
