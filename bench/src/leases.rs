//! Leases: decisions on Redis from units that were taken in advance, against the same without.

mod commands;
mod denied;
mod excess;
mod hot;
mod server;
mod traffic;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use headgate::{Batch, Check, Cost, Extra, Key, Limit, Store, Verb};
use headgate_store_leased::LeasedStore;
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::Redis;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use self::commands::Commands;
use crate::{options::Options, random::Random, redis::cores};

type Leased = LeasedStore<RedisStore>;

/// One Redis, and instances in this process.
struct Bench {
    options: Options,
    redis: Redis,
    runtime: Runtime,
}

/// What tasks ask for, again and again.
struct Questions {
    names: Vec<String>,
    limit: Limit,
    extra: Option<Extra>,
    draw: Box<dyn Fn(&mut Random) -> usize + Send + Sync>,
}

/// Results of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Decisions per second.
    rate: f64,
    admitted: u64,
    /// Redis calls per second.
    calls: f64,
    calls_per_decision: f64,
    /// Microseconds of Redis for each decision.
    redis_micros: f64,
}

/// Requests in flight.
const TASKS: u64 = 64;

pub(crate) fn report(options: Options) {
    println!("## Leases\n");
    cores::share();
    match Redis::start() {
        Ok(redis) => Bench::new(options, redis).report(),
        Err(reason) => println!("skipped: {reason}\n"),
    }
    if let Err(reason) = server::report(options) {
        println!("skipped servers with leases: {reason}\n");
    }
}

impl Bench {
    fn new(options: Options, redis: Redis) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Self { options, redis, runtime: runtime.expect("a runtime") }
    }

    fn report(&self) {
        hot::report(self);
        traffic::report(self);
        denied::report(self);
        excess::report(self);
        println!(
            "\n{} rounds of {:?}, {TASKS} requests in flight; Redis and instances share all cores.\n",
            self.options.rounds(),
            self.length()
        );
    }

    fn length(&self) -> Duration {
        Duration::from_secs(if self.options.is_quick() { 2 } else { 4 })
    }

    fn store(&self) -> RedisStore {
        let config = RedisConfig::from_url(&self.redis.url()).expect("a Redis URL");
        let config = config.timeout(Duration::from_secs(10));
        self.runtime.block_on(async { RedisStore::connect(config) })
    }

    /// An instance that also gives back what it does not use.
    fn instance(&self) -> Arc<Leased> {
        let instance = Arc::new(LeasedStore::new(self.store()));
        let returning = Arc::clone(&instance);
        self.runtime.spawn(async move { returning.give_back_unused().await });
        instance
    }

    /// Asks in a closed loop. The first part of the round, in which paces are learned, is not
    /// measured.
    #[expect(clippy::disallowed_methods, reason = "a bench measures for some time")]
    fn round(&self, store: &Arc<impl Store + 'static>, questions: &Arc<Questions>) -> Round {
        let decisions = Arc::new([const { AtomicU64::new(0) }; 2]);
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for seed in 0..TASKS {
            let (store, questions) = (Arc::clone(store), Arc::clone(questions));
            let (decisions, stop) = (Arc::clone(&decisions), Arc::clone(&stop));
            let task = async move { questions.ask(&*store, seed, &decisions, &stop).await };
            tasks.spawn_on(task, self.runtime.handle());
        }
        std::thread::sleep(self.length());
        let read = || decisions.each_ref().map(|count| count.load(Relaxed));
        let (before, commands, started) = (read(), Commands::read(&self.redis), now());
        std::thread::sleep(self.length());
        let (after, seconds) = (read(), started.elapsed().as_secs_f64());
        let commands = Commands::read(&self.redis).since(commands);
        stop.store(true, Relaxed);
        self.runtime.block_on(tasks.join_all());
        let [made, admitted] = [0, 1].map(|i| after[i] - before[i]);
        Round {
            rate: made as f64 / seconds,
            admitted,
            calls: commands.calls / seconds,
            calls_per_decision: commands.calls / made as f64,
            redis_micros: commands.micros / made as f64,
        }
    }
}

impl Questions {
    /// One subject.
    fn one(name: &str, limit: Limit, extra: Option<Extra>) -> Arc<Self> {
        Arc::new(Self { names: vec![name.to_owned()], limit, extra, draw: Box::new(|_| 0) })
    }

    async fn ask(&self, store: &impl Store, seed: u64, counts: &[AtomicU64; 2], stop: &AtomicBool) {
        let mut random = Random::new(seed);
        for n in 0_u64.. {
            let name = &self.names[(self.draw)(&mut random)];
            let check = check(name, &self.limit);
            let check = self.extra.map_or(check, |extra| check.with_extra(extra));
            let answer = store.apply(Verb::Acquire, &Batch::from(check)).await.expect("an answer");
            counts[0].fetch_add(1, Relaxed);
            counts[1].fetch_add(u64::from(answer[0].allowed), Relaxed);
            if n % 32 == 0 {
                if stop.load(Relaxed) {
                    return;
                }
                // Decisions without a call never wait.
                tokio::task::yield_now().await;
            }
        }
    }
}

fn check<'a>(name: &'a str, limit: &'a Limit) -> Check<'a> {
    Check::new(Key::new(name).expect("a key"), limit, Cost::ONE).expect("a cost that fits")
}

/// A tenth of the limit.
fn tenth(limit: &Limit, hold: Duration) -> Extra {
    Extra::new(u32::try_from(limit.capacity() / 10).unwrap_or(u32::MAX), hold)
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
