//! Instances that lease from a cluster while one of them is killed and a master fails over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{
    Algorithm, Batch, Check, Cost, Extra, Key, KeySpace, Limit, Store, StoreError, Verb,
    algorithm::Period,
};
use headgate_store_leased::LeasedStore;
use headgate_store_redis::RedisStore;
use headgate_testkit::{RedisCluster, require, wait_until};
use tokio::{
    runtime::Runtime,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::support::{TEST_TIMEOUT, cluster_store, runtime};

const LIMIT: u64 = 10_000;
/// On a busy machine, calls may take longer than a shorter hold.
const HOLD: Duration = Extra::MAX_HOLD;

/// Node 0 of three serves its slot.
const ON_THE_FIRST: &str = "{bar}";

type Instance = Arc<LeasedStore<RedisStore>>;

/// Three instances on a cluster, and what they have admitted by algorithm.
struct Fleet {
    runtime: Runtime,
    instances: Vec<Instance>,
    admitted: Arc<[AtomicU64; 6]>,
    stop: Arc<AtomicBool>,
    load: Vec<JoinSet<()>>,
    /// Units that a killed instance has lost.
    lost_by_killed: u64,
}

impl Fleet {
    fn start(cluster: &RedisCluster) -> Self {
        let runtime = runtime();
        let instances = (0..3).map(|_| instance(&runtime, cluster)).collect();
        let mut fleet = Self {
            runtime,
            instances,
            admitted: Arc::default(),
            stop: Arc::default(),
            load: Vec::new(),
            lost_by_killed: 0,
        };
        fleet.load = fleet.instances.iter().map(|instance| fleet.load(instance)).collect();
        fleet
    }

    /// Requests of every algorithm at one instance, slow enough that units are left at the end.
    fn load(&self, instance: &Instance) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        for (i, algorithm) in Algorithm::RATES.into_iter().enumerate() {
            let (instance, admitted) = (Arc::clone(instance), Arc::clone(&self.admitted));
            let stop = Arc::clone(&self.stop);
            let task = async move {
                while !stop.load(Relaxed) {
                    for _ in 0..10 {
                        let admits = apply(&instance, algorithm, Verb::Acquire).await;
                        admitted[i].fetch_add(u64::from(admits.is_ok_and(|it| it.0)), Relaxed);
                    }
                    sleep(Duration::from_millis(10)).await;
                }
            };
            tasks.spawn_on(task, self.runtime.handle());
        }
        tasks
    }

    /// Waits until instances have decided without a call.
    fn wait_for_leases(&self) {
        let leases = |instance: &Instance| instance.stats().admitted_locally > 100;
        assert!(wait_until(4 * TEST_TIMEOUT, || self.instances.iter().all(leases)));
    }

    /// Kills an instance: its requests end, and nothing comes back.
    fn kill_one(&mut self) {
        drop(self.load.pop());
        if let Some(killed) = self.instances.pop() {
            self.lost_by_killed += killed.stats().lost + killed.held();
            std::mem::forget(killed);
        }
    }

    /// Ends the load, and waits until all grants have ended.
    fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        for load in self.load.drain(..) {
            self.runtime.block_on(load.join_all());
        }
        self.runtime.block_on(async { sleep(2 * HOLD).await });
    }

    fn admitted(&self) -> [u64; 6] {
        self.admitted.each_ref().map(|count| count.load(Relaxed))
    }

    /// Units of all algorithms that instances have got, but too late on a busy machine.
    fn lost(&self) -> u64 {
        let lost = self.instances.iter().map(|instance| instance.stats().lost);
        self.lost_by_killed + lost.sum::<u64>()
    }

    /// What the store has left, once it answers again.
    fn left(&self, algorithm: Algorithm) -> u64 {
        let instance = &self.instances[0];
        self.runtime.block_on(async {
            let end = Instant::now() + 4 * TEST_TIMEOUT;
            loop {
                match apply(instance, algorithm, Verb::Peek).await {
                    Ok((_, left)) => return left,
                    Err(error) => assert!(Instant::now() < end, "{error}"),
                }
                sleep(Duration::from_millis(50)).await;
            }
        })
    }

    /// Takes everything that is left; returns the number of admitted units.
    fn take_the_rest(&self, algorithm: Algorithm) -> u64 {
        let mut admitted = 0;
        while self.left(algorithm) > 0 {
            admitted += self.runtime.block_on(async {
                let instance = &self.instances[0];
                let mut admitted = 0;
                while let Ok((true, _)) = apply(instance, algorithm, Verb::Acquire).await {
                    admitted += 1;
                }
                instance.give_back_all().await;
                // A denial is remembered for a while.
                sleep(HOLD / 5).await;
                admitted
            });
        }
        admitted
    }
}

fn instance(runtime: &Runtime, cluster: &RedisCluster) -> Instance {
    let instance = Arc::new(LeasedStore::new(cluster_store(runtime, &cluster.urls())));
    let returning = Arc::clone(&instance);
    runtime.spawn(async move { returning.give_back_unused().await });
    instance
}

/// Returns whether a unit is admitted, and how many are left. No unit returns while the test runs.
async fn apply(
    instance: &Instance,
    algorithm: Algorithm,
    verb: Verb,
) -> Result<(bool, u64), StoreError> {
    let limit = match algorithm {
        Algorithm::Calendar => Limit::calendar(LIMIT, Period::Month, "UTC"),
        algorithm => Limit::new(algorithm, LIMIT, Duration::from_hours(24 * 366)),
    }
    .unwrap();
    let space = KeySpace::new(ON_THE_FIRST, algorithm.name());
    let check = Check::new(Key::new("u:").unwrap().within(&space), &limit, Cost::ONE).unwrap();
    let batch = Batch::from(check.with_extra(Extra::new(1_000, HOLD)));
    let outcomes = instance.apply(verb, &batch).await?;
    Ok((outcomes[0].allowed, outcomes[0].remaining))
}

/// A planned failover: the master stops until its replica has everything.
#[test]
fn a_failover_without_loss_under_load_admits_nothing_over_the_limit() {
    let cluster = require!(RedisCluster::start(3, 1));
    let mut fleet = Fleet::start(&cluster);
    fleet.wait_for_leases();
    assert_eq!(cluster.node(3).cli(&["CLUSTER", "FAILOVER"]), "OK");
    fleet.kill_one();
    let is_master = || cluster.node(3).cli(&["ROLE"]).starts_with("master");
    // It gives up after five seconds, which a busy machine may take.
    let again = || {
        cluster.node(3).cli(&["CLUSTER", "FAILOVER"]);
        wait_until(TEST_TIMEOUT, is_master)
    };
    let done = wait_until(TEST_TIMEOUT, is_master) || (0..3).any(|_| again());
    assert!(done, "{}", cluster.node(3).cli(&["ROLE"]));
    fleet.stop();
    let before = fleet.admitted();
    for (algorithm, before) in Algorithm::RATES.into_iter().zip(before) {
        assert!(before > 0, "{algorithm}");
        let total = before + fleet.take_the_rest(algorithm);
        assert!(total <= LIMIT, "{algorithm}: {total}");
        assert!(total + fleet.lost() > LIMIT / 2, "{algorithm}: {total}");
    }
}

/// Replication is asynchronous: what only the killed master knew, its successor admits again. Not
/// one unit more than that.
#[test]
fn a_killed_master_under_load_lets_only_its_own_loss_be_admitted_again() {
    let cluster = require!(RedisCluster::start(3, 1));
    let mut fleet = Fleet::start(&cluster);
    fleet.wait_for_leases();
    cluster.kill_master(0);
    fleet.kill_one();
    cluster.wait_for_failover();
    fleet.stop();
    let before = fleet.admitted();
    for (algorithm, before) in Algorithm::RATES.into_iter().zip(before) {
        let known = LIMIT - fleet.left(algorithm);
        let lost = before.saturating_sub(known);
        let total = before + fleet.take_the_rest(algorithm);
        assert!(total <= LIMIT + lost, "{algorithm}: {total}, and {lost} were lost");
        assert!(total + fleet.lost() > LIMIT / 2, "{algorithm}: {total}");
    }
}
