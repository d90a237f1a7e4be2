//! Several instances that lease from one Redis.

use std::{sync::Arc, time::Duration};

use headgate::{
    Algorithm, Batch, Check, Cost, Extra, Key, KeySpace, Limit, Store, Verb, algorithm::Period,
};
use headgate_store_leased::LeasedStore;
use headgate_store_redis::RedisStore;
use headgate_testkit::{Redis, require};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::support::{runtime, store};

const LIMIT: u64 = 2_000;
/// On a busy machine, calls may take longer than a shorter hold.
const HOLD: Duration = Extra::MAX_HOLD;

/// No unit returns while the test runs.
fn limit(algorithm: Algorithm) -> Limit {
    match algorithm {
        Algorithm::Calendar => Limit::calendar(LIMIT, Period::Month, "UTC"),
        algorithm => Limit::new(algorithm, LIMIT, Duration::from_hours(24 * 366)),
    }
    .unwrap()
}

fn instance(runtime: &Runtime, redis: &Redis) -> Arc<LeasedStore<RedisStore>> {
    let instance = Arc::new(LeasedStore::new(store(runtime, &redis.url())));
    let returning = Arc::clone(&instance);
    runtime.spawn(async move { returning.give_back_unused().await });
    instance
}

/// Takes single units until the store denies one; returns the number of admitted ones.
async fn take_all(instance: Arc<LeasedStore<RedisStore>>, algorithm: Algorithm) -> u64 {
    let limit = limit(algorithm);
    let space = KeySpace::new(algorithm.name(), "");
    let check = Check::new(Key::new("u").unwrap().within(&space), &limit, Cost::ONE).unwrap();
    let batch = Batch::from(check.with_extra(Extra::new(200, HOLD)));
    let mut admitted = 0;
    while instance.apply(Verb::Acquire, &batch).await.unwrap()[0].allowed {
        admitted += 1;
    }
    admitted
}

async fn left(instance: &LeasedStore<RedisStore>, algorithm: Algorithm) -> u64 {
    let limit = limit(algorithm);
    let space = KeySpace::new(algorithm.name(), "");
    let check = Check::new(Key::new("u").unwrap().within(&space), &limit, Cost::ONE).unwrap();
    instance.apply(Verb::Peek, &Batch::from(check)).await.unwrap()[0].remaining
}

#[test]
fn instances_admit_exactly_the_limit_in_a_tenth_of_the_calls() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let instances = [(); 3].map(|()| instance(&runtime, &redis));
    for algorithm in Algorithm::RATES {
        let stats = || {
            let all = instances.iter().map(|instance| instance.stats());
            all.fold((0, 0), |(calls, lost), it| (calls + it.calls, lost + it.lost))
        };
        let (calls_before, lost_before) = stats();
        let admitted = runtime.block_on(async {
            let mut admitted = 0;
            // What one of them gives back is there for the others.
            while left(&instances[0], algorithm).await > 0 {
                let mut tasks = JoinSet::new();
                for instance in instances.iter().cycle().take(12) {
                    tasks.spawn(take_all(Arc::clone(instance), algorithm));
                }
                admitted += tasks.join_all().await.into_iter().sum::<u64>();
                for instance in &instances {
                    instance.give_back_all().await;
                }
            }
            admitted
        });
        let (calls, lost) = stats();
        let (calls, lost) = (calls - calls_before, lost - lost_before);
        // On a busy machine, what was not used may come back too late, and so may what was granted.
        assert_eq!(admitted + lost, LIMIT, "{algorithm}: {admitted}");
        assert!(calls < LIMIT / 10 + lost, "{algorithm}: {calls} calls, {lost} units lost");
    }
}

/// What a killed instance held is missing until the window is over, and is never spent twice.
#[test]
fn a_killed_instance_loses_only_what_it_held() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    for algorithm in Algorithm::RATES {
        let (killed, survivor) = (instance(&runtime, &redis), instance(&runtime, &redis));
        let limit = limit(algorithm);
        let space = KeySpace::new(algorithm.name(), "");
        let check = Check::new(Key::new("u").unwrap().within(&space), &limit, Cost::ONE).unwrap();
        let batch = Batch::from(check.with_extra(Extra::new(200, HOLD)));
        let (admitted, lost) = runtime.block_on(async {
            let mut admitted = 0;
            while killed.held() < 20 {
                assert!(killed.apply(Verb::Acquire, &batch).await.unwrap()[0].allowed);
                admitted += 1;
            }
            let lost = killed.held() + killed.stats().lost;
            // Nothing of it comes back: it is forgotten without a call.
            std::mem::forget(killed);
            loop {
                admitted += take_all(Arc::clone(&survivor), algorithm).await;
                survivor.give_back_all().await;
                if left(&survivor, algorithm).await == 0 {
                    break (admitted, lost + survivor.stats().lost);
                }
            }
        });
        assert!(admitted <= LIMIT, "{algorithm}: {admitted}");
        assert!(admitted + lost >= LIMIT, "{algorithm}: {admitted} and {lost} held");
    }
}
