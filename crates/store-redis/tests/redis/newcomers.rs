//! The bound on new keys of a process.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{LeaseId, Limit, ManualClock, Store, Timestamp, Verb};
use headgate_store_redis::{NewcomerBound, RedisStore};
use headgate_testkit::{Redis, RedisCluster, require};

use crate::support::{acquire, apply, cluster_store, runtime, store};

const RATE: u32 = 10;

/// A bound with a stopped clock, which admits only the initial burst.
fn bound(store: RedisStore) -> NewcomerBound {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000_000)));
    NewcomerBound::new(Arc::new(store), NonZeroU32::new(RATE).unwrap(), clock)
}

fn hourly(limit: u64) -> Limit {
    Limit::fixed_window(limit, Duration::from_hours(24 * 366)).unwrap()
}

#[test]
fn a_flood_of_new_subjects_adds_few_keys_and_lifts_no_limit() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let direct = store(&runtime, &redis.url());
    let store = bound(store(&runtime, &redis.url()));
    let limit = hourly(2);
    runtime.block_on(async {
        // Denied, with a key that another process has added.
        for _ in 0..3 {
            acquire(&direct, "blocked", &limit).await.unwrap();
        }
        // With a key that this process has added.
        assert_eq!(acquire(&store, "regular", &limit).await.unwrap()[0].remaining, 1);
        let mut admitted = 0;
        for i in 0..5_000 {
            let outcome = acquire(&store, &format!("flood{i}"), &limit).await.unwrap()[0];
            admitted += u64::from(outcome.allowed);
        }
        let keys: u64 = redis.cli(&["DBSIZE"]).parse().unwrap();
        let most = u64::from(RATE) + NewcomerBound::SHARED + 1;
        assert!(keys <= most, "{keys} keys, at most {most}");
        assert!(admitted <= 2 * most, "{admitted} were admitted, at most {}", 2 * most);
        assert!(admitted > 500, "newcomers share what there is: {admitted}");
        assert!(store.shared() >= 4_900, "{} were shared", store.shared());

        assert!(!acquire(&store, "blocked", &limit).await.unwrap()[0].allowed);
        assert_eq!(acquire(&store, "regular", &limit).await.unwrap()[0].remaining, 0);
        assert!(!acquire(&store, "regular", &limit).await.unwrap()[0].allowed);
    });
}

#[test]
fn reservations_on_shared_keys_can_be_committed_and_cancelled() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = bound(cluster_store(&runtime, &cluster.urls()));
    let limit = hourly(1);
    let lease = Duration::from_secs(60);
    runtime.block_on(async {
        for i in 0..RATE {
            acquire(&store, &format!("early{i}"), &limit).await.unwrap();
        }
        let names = ["late", "late too"];
        let id = LeaseId::random();
        let reserve = Verb::Reserve { id, lease };
        assert!(all_allowed(&store, reserve, &names, &limit).await);
        assert!(!all_allowed(&store, Verb::Acquire, &names, &limit).await, "it is reserved");
        assert!(all_allowed(&store, Verb::Cancel(id), &names, &limit).await);
        assert!(all_allowed(&store, reserve, &names, &limit).await, "it was given back");
        assert!(all_allowed(&store, Verb::Commit(id), &names, &limit).await);
        assert!(!all_allowed(&store, Verb::Acquire, &names, &limit).await, "it is taken");
    });
}

async fn all_allowed(store: &dyn Store, verb: Verb, names: &[&str], limit: &Limit) -> bool {
    let outcomes = apply(store, verb, names, limit).await.unwrap();
    outcomes.iter().all(|outcome| outcome.allowed)
}
