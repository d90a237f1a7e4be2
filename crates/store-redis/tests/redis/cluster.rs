//! Redis Cluster: keys on different nodes, scripts that every node must learn, a node that dies.

use std::{rc::Rc, sync::Arc, time::Duration};

use headgate::{Limit, Verb};
use headgate_store_conformance::suite;
use headgate_testkit::{RedisCluster, require};
use tokio::task::JoinSet;

use crate::support::{
    OnRedis, acquire, acquire_eventually, apply, clients_never_get_more_than_the_limit,
    cluster_store, per_minute, runtime,
};

/// Braces put all keys of a scenario on one node.
const ONE_NODE: &str = "{together}";

/// Slots 866 (node 0), 7365 (node 1) and 15495 (node 2) of three.
const THREE_NODES: [&str; 3] = ["bar", "foo-1", "a"];

#[test]
fn agrees_with_the_model_and_never_gives_two_clients_more_than_the_limit() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let fixture = OnRedis::on_its_own_time(cluster_store(&runtime, &cluster.urls()), ONE_NODE);
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
        // One of the three is used up: the other two must not be touched.
        for _ in 0..50 {
            assert!(acquire(&*store, "b", &limit).await.unwrap()[0].allowed);
        }
        let outcomes =
            apply(&*store, Verb::Acquire, &[THREE_NODES[0], THREE_NODES[1], "b"], &limit)
                .await
                .unwrap();
        assert_eq!(outcomes.iter().map(|o| o.allowed).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(outcomes.iter().map(|o| o.remaining).collect::<Vec<_>>(), [50, 50, 0]);

        // Many at once: what is admitted is exactly what each of them has lost.
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

#[test]
fn scripts_are_loaded_where_they_are_missing() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = cluster_store(&runtime, &cluster.urls());
    runtime.block_on(async {
        for left in [4, 3] {
            for key in THREE_NODES {
                let outcome = acquire(&store, key, &per_minute(5)).await.unwrap()[0];
                assert_eq!(outcome.remaining, left, "{key}");
            }
            for node in 0..3 {
                cluster.node(node).cli(&["SCRIPT", "FLUSH"]);
            }
        }
    });
}

#[test]
fn a_failover_under_load_is_survived() {
    let cluster = require!(RedisCluster::start(3, 1));
    let runtime = runtime();
    let store = Arc::new(cluster_store(&runtime, &cluster.urls()));
    let limit = Limit::fixed_window(1_000_000, Duration::from_hours(24 * 366)).unwrap();
    let load = runtime.spawn({
        let (store, limit) = (Arc::clone(&store), limit.clone());
        async move {
            let mut admitted = 0_u64;
            for i in 0.. {
                // Errors are the failure policy's to answer; admissions must be real.
                if let Ok(outcomes) = acquire(&*store, &format!("load:{}", i % 50), &limit).await {
                    admitted += u64::from(outcomes[0].allowed);
                }
                if i > 2_000 && i % 50 == 0 && Arc::strong_count(&store) == 1 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            admitted
        }
    });
    cluster.kill_master(0);
    cluster.wait_for_failover();
    runtime.block_on(async {
        for key in THREE_NODES {
            assert!(acquire_eventually(&*store, key, &limit).await[0].allowed, "{key}");
        }
        drop(store);
        assert!(load.await.unwrap() > 0);
    });
}
