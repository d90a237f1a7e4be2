//! On Redis: one over throughput, in microseconds.

use std::{sync::Arc, time::Duration};

use headgate::{BatchLimiter, Limit};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::Redis;
use tokio::runtime::{Builder, Runtime};

use super::{Figures, Subjects, Work, now, rows, run};
use crate::{options::Options, random::Random, redis::cores};

/// Requests in flight.
pub(super) const IN_FLIGHT: usize = 64;

const SUBJECTS: usize = 100_000;
const COUNT: usize = 64_000;

pub(super) fn measure(options: Options) -> Result<Vec<(String, Figures)>, String> {
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    cores::separate(redis.pid());
    let client = Client::connect(&redis);
    let each = COUNT / options.thinning() / IN_FLIGHT;
    let measured = rows().map(|(algorithm, subjects, name)| {
        let limit = algorithm.limit();
        let prefix = name.replace([' ', ','], "-");
        // Subjects with reservations are apart from those that are only checked.
        let of = |work: Work| {
            let (prefix, limit) = (format!("{prefix}:{work:?}"), limit.clone());
            client.micros(Load { work, subjects, prefix, limit, each })
        };
        (name, Figures::measure(options, of))
    });
    Ok(measured.collect())
}

/// A limiter as in a service: shared by tasks, over a few connections.
struct Client {
    runtime: Runtime,
    limiter: BatchLimiter,
}

struct Load {
    work: Work,
    subjects: Subjects,
    prefix: String,
    limit: Limit,
    /// Number for each task.
    each: usize,
}

impl Client {
    fn connect(redis: &Redis) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let config = RedisConfig::from_url(&redis.url()).expect("a Redis URL");
        let config = config.timeout(Duration::from_secs(10));
        let limiter = runtime.block_on(async { BatchLimiter::new(RedisStore::connect(config)) });
        Self { runtime, limiter }
    }

    /// Microseconds for each, of many tasks in a closed loop.
    fn micros(&self, load: Load) -> f64 {
        let (total, load) = (IN_FLIGHT * load.each, Arc::new(load));
        let started = now();
        self.runtime.block_on(async {
            let spawn = |seed| {
                tokio::spawn(ask_in_turn(self.limiter.clone(), Arc::clone(&load), seed as u64))
            };
            let tasks: Vec<_> = (0..IN_FLIGHT).map(spawn).collect();
            for task in tasks {
                task.await.expect("a task panicked");
            }
        });
        started.elapsed().as_secs_f64() * 1e6 / total as f64
    }
}

async fn ask_in_turn(limiter: BatchLimiter, load: Arc<Load>, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..load.each {
        let subject = match load.subjects {
            Subjects::Distinct => random.below(SUBJECTS),
            Subjects::One => 0,
        };
        let name = format!("{}:{subject}", load.prefix);
        run(&limiter, load.work, &name, &load.limit).await;
    }
}
