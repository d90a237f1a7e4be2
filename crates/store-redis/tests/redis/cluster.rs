//! Redis Cluster: batches over several nodes, missing scripts, migrating slots, failover.

use std::{rc::Rc, sync::Arc, time::Duration};

use futures_util::FutureExt;
use headgate::{
    Algorithm, Batch, Check, CheckMode, Cost, Key, KeySpace, LeaseId, Limit, Place, Store,
    StoreError, Verb,
};
use headgate_store_conformance::suite;
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, RedisCluster, require, wait_until};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    load::Load,
    support::{
        OnRedis, TEST_TIMEOUT, acquire, acquire_eventually, apply,
        clients_never_get_more_than_the_limit, cluster_store, patient, per_day, per_minute,
        runtime,
    },
};

/// A hash tag, which puts all keys of a scenario on one node.
const ONE_NODE: &str = "{together}";

/// Slots 866 (node 0), 7365 (node 1) and 15495 (node 2) of three.
const THREE_NODES: [&str; 3] = ["bar", "foo-1", "a"];

#[test]
fn matches_the_model_and_two_clients_never_exceed_the_limit() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(cluster_store(&runtime, &cluster.urls()), ONE_NODE);
    suite::agrees_with_the_model(|| Rc::clone(&fixture), 64, |scenario| runtime.block_on(scenario));
    let fixture = OnRedis::spread_over_slots(cluster_store(&runtime, &cluster.urls()));
    suite::agrees_with_the_model(|| Rc::clone(&fixture), 64, |scenario| runtime.block_on(scenario));

    let stores =
        [cluster_store(&runtime, &cluster.urls()), cluster_store(&runtime, &cluster.urls())];
    clients_never_get_more_than_the_limit(&runtime, stores, "");
}

#[test]
fn a_batch_over_several_nodes_is_all_or_nothing() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = Arc::new(cluster_store(&runtime, &cluster.urls()));
    let slots: Vec<String> =
        THREE_NODES.iter().map(|key| cluster.node(0).cli(&["CLUSTER", "KEYSLOT", key])).collect();
    assert!(slots[0] != slots[1] && slots[1] != slots[2], "{slots:?}");

    let limit = Limit::sliding_window(50, Duration::from_secs(3600)).unwrap();
    runtime.block_on(async {
        // One of the three is used up: nothing is taken from the other two.
        for _ in 0..50 {
            assert!(acquire(&*store, "b", &limit).await.unwrap()[0].allowed);
        }
        let outcomes =
            apply(&*store, Verb::Acquire, &[THREE_NODES[0], THREE_NODES[1], "b"], &limit)
                .await
                .unwrap();
        assert_eq!(outcomes.iter().map(|o| o.allowed).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(outcomes.iter().map(|o| o.remaining).collect::<Vec<_>>(), [50, 50, 0]);

        // With concurrent calls, each key has lost exactly the admitted units.
        let mut callers = JoinSet::new();
        for _ in 0..8 {
            let (store, limit) = (Arc::clone(&store), limit.clone());
            callers.spawn(async move {
                let mut admitted = 0;
                for _ in 0..20 {
                    let outcomes =
                        apply(&*store, Verb::Acquire, &THREE_NODES, &limit).await.unwrap();
                    admitted += u64::from(outcomes.iter().all(|outcome| outcome.allowed));
                }
                admitted
            });
        }
        let admitted: u64 = callers.join_all().await.into_iter().sum();
        assert!((1..=50).contains(&admitted), "{admitted} of 50");
        for key in THREE_NODES {
            let left = apply(&*store, Verb::Peek, &[key], &limit).await.unwrap()[0].remaining;
            assert_eq!(left, 50 - admitted, "{key}");
        }
    });
}

/// Sends 400 concurrent calls. Returns the number of admissions.
async fn four_hundred_at_once(
    clients: &[Arc<RedisStore>],
    keys: [&'static str; 2],
    limit: &Limit,
) -> u64 {
    let mut callers = JoinSet::new();
    for i in 0..400 {
        let (store, limit) = (Arc::clone(&clients[i % clients.len()]), limit.clone());
        callers.spawn(async move { apply(&*store, Verb::Acquire, &keys, &limit).await.unwrap() });
    }
    let answers = callers.join_all().await;
    answers.iter().filter(|outcomes| outcomes.iter().all(|outcome| outcome.allowed)).count() as u64
}

#[test]
fn concurrent_batches_over_two_nodes_never_exceed_the_limit() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let clients = [(); 2].map(|()| Arc::new(cluster_store(&runtime, &cluster.urls())));
    let a_year = Duration::from_hours(24 * 366);
    runtime.block_on(async {
        for algorithm in Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::Calendar) {
            let keys = ["bar", "a"].map(|key| &*format!("{key}:{algorithm}").leak());
            let left = async |limit: &Limit| {
                let outcomes = apply(&*clients[0], Verb::Peek, &keys, limit).await.unwrap();
                [outcomes[0].remaining, outcomes[1].remaining]
            };
            // There is room for all: none is denied because of the others.
            let limit = Limit::new(algorithm, 10_000, a_year).unwrap();
            assert_eq!(four_hundred_at_once(&clients, keys, &limit).await, 400, "{algorithm}");
            assert_eq!(left(&limit).await, [9_600; 2], "{algorithm}");

            // There is room for 50 more. Calls of one client reach both nodes in about the same
            // order; of two clients, each may be first on one node.
            let limit = Limit::new(algorithm, 450, a_year).unwrap();
            let first = four_hundred_at_once(&clients[..1], keys, &limit).await;
            assert!((25..=50).contains(&first), "{algorithm}: {first} of 50");
            assert_eq!(left(&limit).await, [50 - first; 2], "{algorithm}");
            let then = four_hundred_at_once(&clients, keys, &limit).await;
            assert!(first + then <= 50, "{algorithm}: {first} and {then} of 50");
            assert_eq!(left(&limit).await, [50 - first - then; 2], "{algorithm}");
        }
    });
}

/// A request is sent again under the same id, and denied this time: what the first one holds stays.
#[test]
fn a_denied_retry_leaves_what_the_first_request_holds() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    let [place, bucket, units] = THREE_NODES.map(|name| Key::new(name).unwrap());
    let lease = Duration::from_mins(10);
    let places = Limit::concurrency(1, lease).unwrap();
    let once = Limit::cooldown(Duration::from_hours(24)).unwrap();
    let hundred = Limit::fixed_window(100, Duration::from_hours(24 * 366)).unwrap();
    let check = |key, limit, cost| Check::new(key, limit, Cost::new(cost).unwrap()).unwrap();
    let [first, other] = [1, 2].map(LeaseId::from);
    let ask = async |verb, batch: Batch<'_>| store.apply(verb, &batch).await.unwrap();
    runtime.block_on(async {
        let place = check(place, &places, 1);
        let acquire = async || {
            let held = place.holding(Place { id: first, lease });
            let batch = Batch::new([held, check(bucket, &once, 1)]).unwrap();
            ask(Verb::Acquire, batch).await.iter().map(|it| it.allowed).collect::<Vec<_>>()
        };
        assert_eq!(acquire().await, [true, true]);
        assert_eq!(acquire().await, [true, false]);
        let held = place.holding(Place { id: other, lease });
        assert!(!ask(Verb::Acquire, held.into()).await[0].allowed, "the place is not free");

        // Units and a place: the place ends, and another takes it.
        assert!(ask(Verb::Cancel(first), place.into()).await[0].allowed);
        let units = check(units, &hundred, 10);
        let reserve = async || {
            let batch = Batch::new([units, place]).unwrap();
            let outcomes = ask(Verb::Reserve { id: first, lease }, batch).await;
            outcomes.iter().map(|it| it.allowed).collect::<Vec<_>>()
        };
        assert_eq!(reserve().await, [true, true]);
        assert!(ask(Verb::Cancel(first), place.into()).await[0].allowed);
        let held = place.holding(Place { id: other, lease });
        assert!(ask(Verb::Acquire, held.into()).await[0].allowed);
        assert_eq!(reserve().await, [true, false]);
        let left = ask(Verb::Peek, units.into()).await[0].remaining;
        assert_eq!(left, 90, "the first reservation holds its units");

        // A request that takes nothing at all leaves nothing either.
        let unheld = Verb::Reserve { id: LeaseId::from(3), lease };
        let denied = ask(unheld, Batch::new([units, place]).unwrap()).await;
        assert_eq!(denied.iter().map(|it| it.allowed).collect::<Vec<_>>(), [true, false]);
        assert_eq!(ask(Verb::Peek, units.into()).await[0].remaining, 90);
    });
}

#[test]
fn a_cancelled_batch_over_several_nodes_is_undone() {
    const CALLS: u64 = 100;
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    let limit = Limit::fixed_window(1_000, Duration::from_hours(24 * 366)).unwrap();
    let once = Limit::cooldown(Duration::from_hours(24)).unwrap();
    // Both keys are in one slot, so that the count shows the units taken from the shared limit.
    let space = KeySpace::new("{all}", "");
    let [shared, counted] =
        ["shared", "counted"].map(|name| Key::new(name).unwrap().within(&space));
    let [shared, counted] =
        [shared, counted].map(|key| Check::new(key, &limit, Cost::ONE).unwrap());
    let own = Check::new(Key::new("own").unwrap(), &once, Cost::ONE).unwrap();
    let batch = Batch::new([shared, counted.with_mode(CheckMode::Independent), own]).unwrap();
    let left =
        async |check| store.apply(Verb::Peek, &Batch::from(check)).await.unwrap()[0].remaining;
    runtime.block_on(async {
        assert!(acquire(&store, "own", &once).await.unwrap()[0].allowed);
        for _ in 0..CALLS {
            assert!(
                store.apply(Verb::Acquire, &batch).now_or_never().is_none(),
                "it waits for Redis"
            );
        }
        let all_back = async {
            while left(counted).await != 1_000 - CALLS || left(shared).await != 1_000 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, all_back).await.expect("all is given back");
    });
}

#[test]
fn missing_scripts_are_loaded() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    runtime.block_on(async {
        for left in [4, 3] {
            for key in THREE_NODES {
                let outcome = acquire(&store, key, &per_day(5)).await.unwrap()[0];
                assert_eq!(outcome.remaining, left, "{key}");
            }
            for node in 0..3 {
                cluster.node(node).cli(&["SCRIPT", "FLUSH"]);
            }
        }
    });
}

#[test]
fn a_dead_master_affects_only_its_own_slots() {
    const TOLERANCE: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(100);
    let [dead, alive, alive_too] = THREE_NODES;
    let cluster = require!(RedisCluster::start_partial(3));
    let runtime = runtime();
    let store = {
        let _guard = runtime.enter();
        let config = patient(RedisConfig::cluster(&cluster.urls()).unwrap());
        RedisStore::connect(config.breaker(TOLERANCE, PAUSE))
    };
    let limit = Limit::fixed_window(1_000, Duration::from_hours(24 * 366)).unwrap();
    let status = || store.status();
    runtime.block_on(async {
        apply(&store, Verb::Acquire, &THREE_NODES, &limit).await.unwrap();
        assert_eq!(status().outage(), None);
        cluster.kill_master(0);

        let (mut errors, began) = (Vec::new(), Instant::now());
        for i in 1..=100 {
            errors.extend(acquire(&store, dead, &limit).await.err());
            for key in [alive, alive_too] {
                let outcome = acquire(&store, key, &limit).await.expect("its node is there")[0];
                assert_eq!(outcome.remaining, 999 - 2 * i + 1, "{key}");
            }
            // A batch that needs the dead node is degraded as a whole and takes nothing from the
            // others.
            let failed = apply(&store, Verb::Acquire, &[dead, alive], &limit).await;
            assert!(failed.unwrap_err().is_outage());
            let both = apply(&store, Verb::Acquire, &[alive, alive_too], &limit).await.unwrap();
            assert_eq!(both.iter().map(|o| o.remaining).collect::<Vec<_>>(), [999 - 2 * i; 2]);
        }
        assert_eq!(errors.len(), 100);
        // The node is tried once in every pause, however long a hundred calls take.
        let is_try = |error: &&StoreError| !matches!(error, StoreError::BreakerOpen);
        let tries = errors.iter().filter(is_try).count() as u128;
        let pauses = began.elapsed().as_millis() / PAUSE.as_millis();
        let most = u128::from(TOLERANCE) + 1 + pauses;
        assert!(tries <= most, "{tries} of 100 were not answered at once: {errors:?}");
        let outage = status().outage().unwrap();
        assert!(outage.contains("1 of 3") && outage.contains("slots 0-5460"), "{outage}");

        cluster.node(0).restart();
        acquire_eventually(&store, dead, &limit).await;
        let whole = async {
            while status().outage().is_some() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, whole).await.expect("it is whole again");
    });
}

#[test]
fn calls_for_a_slot_without_a_node_are_refused_until_a_node_serves_it() {
    // Polls of the slot map are 15 s apart.
    const SOONER: Duration = Duration::from_secs(12);
    let cluster = require!(RedisCluster::start_partial(3));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    let (key, limit) = (THREE_NODES[0], per_minute(1_000));
    let slot = cluster.node(0).cli(&["CLUSTER", "KEYSLOT", key]);
    runtime.block_on(async {
        acquire_eventually(&store, key, &limit).await;
        for node in 0..3 {
            assert_eq!(cluster.node(node).cli(&["CLUSTER", "DELSLOTS", &slot]), "OK");
        }
        let refusal = async || acquire(&store, key, &limit).await.unwrap_err().to_string();
        let unserved = format!("no node of the cluster serves slot {slot}");
        let known = async { while !refusal().await.contains(&unserved) {} };
        tokio::time::timeout(TEST_TIMEOUT, known).await.expect("the slot map is loaded again");
        // Earlier errors may have asked for the map, too. That is over in a moment.
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(1) {
            assert!(refusal().await.contains(&unserved));
        }
        assert_eq!(cluster.node(0).cli(&["CLUSTER", "ADDSLOTS", &slot]), "OK");
        let served = acquire_eventually(&store, key, &limit);
        tokio::time::timeout(SOONER, served).await.expect("it does not wait for a poll");
    });
}

#[test]
fn calls_follow_a_migrating_slot() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    let limit = Limit::fixed_window(1_000, Duration::from_hours(24 * 366)).unwrap();
    let (from, to) = (cluster.node(0), cluster.node(1));
    let slot = from.cli(&["CLUSTER", "KEYSLOT", "bar"]);
    let [from_id, to_id] = [from, to].map(|node| node.cli(&["CLUSTER", "MYID"]));
    // A hash tag, so that the keys share a slot.
    let space = KeySpace::new("{bar}", "");
    let acquire = async |names: &[&'static str]| {
        let key = |name| Key::new(name).unwrap().within(&space);
        let checks = names.iter().map(|name| Check::new(key(name), &limit, Cost::ONE).unwrap());
        store.apply(Verb::Acquire, &Batch::new(checks).unwrap()).await
    };
    let left = async |names: &[&'static str]| acquire(names).await.unwrap()[0].remaining;
    runtime.block_on(async {
        assert_eq!(left(&["old"]).await, 999);
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
        // Existing keys are still on the old node; a new key of the slot is created on the new
        // node.
        assert_eq!(left(&["old"]).await, 998);
        assert_eq!(left(&["new"]).await, 999);
        assert_eq!(to.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot]), "1", "ASK is followed");
        // Keys on both nodes cannot be decided together until the slot has moved.
        let torn = acquire(&["old", "new"]).await.unwrap_err();
        assert!(matches!(torn, StoreError::Refused(_)), "{torn}");
        let port = to.port().to_string();
        let moved = from.cli(&["MIGRATE", "127.0.0.1", &port, "{bar}old", "0", "60000"]);
        assert_eq!(moved, "OK");
        assert_eq!(left(&["old", "new"]).await, 997);
        for node in [to, from, cluster.node(2)] {
            assert_eq!(node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]), "OK");
        }
        for i in 0..20 {
            assert_eq!(left(&["old"]).await, 996 - i);
        }
    });
}

/// Replication offset of a node.
fn replicated(node: &Redis) -> u64 {
    let info = node.cli(&["INFO", "replication"]);
    let offset = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    offset.unwrap().trim().parse().unwrap()
}

#[test]
fn calls_recover_from_a_failover_under_load() {
    const LIMIT: u64 = 5_000;
    let [lost, kept, kept_too] = THREE_NODES;
    let cluster = require!(RedisCluster::start(3, 1));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    let load = Load::start(&runtime, store, &THREE_NODES, LIMIT);
    load.until("calls are answered", |told| told.admissions(lost) > 200);
    // The replica has all admissions until now when its master dies.
    let safe = load.so_far(|told| told.admitted[lost].iter().max().copied());
    let offset = replicated(cluster.node(0));
    assert!(
        wait_until(TEST_TIMEOUT, || replicated(cluster.node(3)) >= offset),
        "the replica follows"
    );
    cluster.kill_master(0);
    load.until("calls fail", |told| !told.errors.is_empty());
    cluster.wait_for_failover();
    let before = THREE_NODES.map(|key| load.so_far(|told| told.answers(key)));
    load.until("every node answers again", |told| {
        THREE_NODES
            .iter()
            .zip(before)
            .all(|(key, before)| told.answers(key) > before + Load::CALLERS)
    });
    load.until("limits are reached", |told| {
        THREE_NODES.iter().all(|key| told.denied.contains_key(key))
    });
    let told = load.stop(&runtime);

    // Replication is asynchronous: units that only the dead master knew of are admitted once more
    // by its successor. No others are, and none on the other nodes.
    for key in [kept, kept_too] {
        assert_eq!(told.given(key, 1).len() as u64, told.admissions(key), "{key}");
    }
    let again = told.given(lost, 2);
    assert_eq!(told.given(lost, 1).len() + 2 * again.len(), told.admissions(lost) as usize);
    assert!(again.first().copied() > safe || again.is_empty(), "{safe:?} {again:?}");
    for key in THREE_NODES {
        assert!(told.admitted[key].iter().all(|unit| (1..=LIMIT).contains(unit)), "{key}");
    }
    // While its replica is being elected, no node may serve a slot.
    let is_expected =
        |error: &&StoreError| error.is_outage() || matches!(error, StoreError::Refused(_));
    let other = told.errors.iter().find(|error| !is_expected(error));
    assert!(other.is_none(), "{other:?}");
}
