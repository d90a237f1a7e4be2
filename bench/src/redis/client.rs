//! Our store under load.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use headgate::{Batch, Check, Cost, Key, Limit, Store, Verb};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::Redis;
use tokio::runtime::{Builder, Runtime};

use super::{Load, SUBJECTS};
use crate::{random::Random, report::median};

/// A store as in a service: shared by tasks, over a few connections.
pub(super) struct Client {
    runtime: Runtime,
    store: Arc<RedisStore>,
}

impl Client {
    pub(super) fn connect(redis: &Redis) -> Self {
        // It has one core: more threads would not help.
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let config = RedisConfig::from_url(&redis.url()).expect("a Redis URL");
        let config = config.timeout(Duration::from_secs(10));
        let store = runtime.block_on(async { Arc::new(RedisStore::connect(config)) });
        Self { runtime, store }
    }

    /// Returns decisions per second of many tasks in a closed loop.
    pub(super) fn rate(&self, load: Load) -> f64 {
        let each = load.decisions / load.in_flight();
        let elapsed = self.runtime.block_on(async {
            let started = now();
            let spawn = |i| tokio::spawn(ask_in_turn(Arc::clone(&self.store), i as u64, each));
            let tasks: Vec<_> = (0..load.in_flight()).map(spawn).collect();
            for task in tasks {
                task.await.expect("a task panicked");
            }
            started.elapsed()
        });
        (each * load.in_flight()) as f64 / elapsed.as_secs_f64()
    }

    /// Returns median microseconds for batches of these sizes, one batch at a time. Sizes
    /// alternate, so that noise of the machine affects all.
    pub(super) fn latencies<const N: usize>(
        &self,
        sizes: [usize; N],
        samples: usize,
        seed: u64,
    ) -> [f64; N] {
        let mut random = Random::new(seed);
        let mut taken = [const { Vec::new() }; N];
        for _ in 0..samples {
            for (size, taken) in sizes.into_iter().zip(&mut taken) {
                taken.push(self.latency(random.below(SUBJECTS), size));
            }
        }
        taken.map(|taken| median(&taken))
    }

    /// Returns microseconds for one batch of `limits` subjects from `first` on.
    fn latency(&self, first: usize, limits: usize) -> f64 {
        let limit = limit();
        let keys: Vec<String> = (0..limits).map(|i| numbered((first + i) % SUBJECTS)).collect();
        let checks = keys.iter().map(|key| check(key, &limit));
        let batch = Batch::new(checks).expect("a batch of different keys");
        let started = now();
        self.runtime.block_on(self.store.apply(Verb::Acquire, &batch)).expect("an answer");
        started.elapsed().as_nanos() as f64 / 1_000.0
    }
}

async fn ask_in_turn(store: Arc<RedisStore>, seed: u64, count: usize) {
    let mut random = Random::new(seed);
    let limit = limit();
    for _ in 0..count {
        let key = numbered(random.below(SUBJECTS));
        let batch = Batch::from(check(&key, &limit));
        store.apply(Verb::Acquire, &batch).await.expect("an answer");
    }
}

pub(super) fn limit() -> Limit {
    Limit::token_bucket(100, Duration::from_mins(1)).expect("a limit")
}

pub(super) fn key(subject: &str) -> String {
    format!("bench:{subject}")
}

pub(super) fn check<'a>(key: &'a str, limit: &'a Limit) -> Check<'a> {
    Check::new(Key::new(key).expect("a key"), limit, Cost::ONE).expect("a cost that fits")
}

/// Formats the subject like redis-benchmark.
fn numbered(subject: usize) -> String {
    key(&format!("{subject:012}"))
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
