//! The bound on new keys of a process.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{
    Batch, Check, CheckMode, Cost, Extra, Key, LeaseId, Limit, ManualClock, Outcome, Spent,
    Standing, Store, Timestamp, Verb,
};
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
fn a_new_subject_has_one_shared_key_at_every_position_of_a_batch() {
    const POSITIONS: usize = 12;
    let redis = require!(Redis::start());
    let runtime = runtime();
    let direct = store(&runtime, &redis.url());
    let store = bound(store(&runtime, &redis.url()));
    let (limit, large) = (hourly(10), hourly(1_000_000));
    let known: Vec<String> = (0..POSITIONS).map(|i| format!("known{i}")).collect();
    runtime.block_on(async {
        for name in &known {
            acquire(&direct, name, &large).await.unwrap();
        }
        for i in 0..RATE {
            acquire(&store, &format!("early{i}"), &large).await.unwrap();
        }
        let mut admitted = 0;
        for position in (0..POSITIONS).cycle().take(5 * POSITIONS) {
            let before = known[..position].iter().map(|name| check(name, &large));
            let batch = Batch::new(before.chain([check("new", &limit)])).unwrap();
            let outcomes = store.apply(Verb::Acquire, &batch).await.unwrap();
            admitted += u64::from(outcomes[position].allowed);
        }
        assert_eq!(admitted, 10);
    });
}

#[test]
fn new_subjects_of_one_batch_have_different_shared_keys() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = bound(store(&runtime, &redis.url()));
    let limit = hourly(1);
    let names: Vec<String> = (0..300).map(|i| format!("new{i}")).collect();
    runtime.block_on(async {
        for i in 0..RATE {
            acquire(&store, &format!("early{i}"), &hourly(2)).await.unwrap();
        }
        // About forty of them meet another one with the same key.
        let batch = Batch::new(names.iter().map(|name| check(name, &limit))).unwrap();
        let outcomes = store.apply(Verb::Acquire, &batch).await.unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.allowed));
    });
    let keys: u64 = redis.cli(&["DBSIZE"]).parse().unwrap();
    assert_eq!(keys, u64::from(RATE) + 300);
}

#[test]
fn nothing_is_granted_from_a_shared_key() {
    // A grant ends after a second.
    let redis = require!(Redis::builder().fake_clock(1_772_928_000_000_000).start());
    let runtime = runtime();
    let store = bound(store(&runtime, &redis.url()));
    let limit = hourly(100);
    runtime.block_on(async {
        let lease = async |name: &str| {
            let extra = Extra::new(50, Duration::from_mins(30));
            ask(&store, Verb::Lease, check(name, &limit).with_extra(extra)).await
        };
        let own = lease("early").await.grant().unwrap();
        assert_eq!(own.units, 50);
        for i in 1..RATE {
            acquire(&store, &format!("early{i}"), &limit).await.unwrap();
        }
        let shared = lease("new").await;
        assert_eq!((shared.allowed, shared.remaining, shared.grant()), (true, 99, None));
        // What a subject gives back is its own.
        for (name, allowed) in [("new", false), ("early", true)] {
            let back = check(name, &limit).from_grant_until(own.until);
            assert_eq!(ask(&store, Verb::GiveBack, back).await.allowed, allowed, "{name}");
        }
        assert_eq!(ask(&store, Verb::Peek, check("early", &limit)).await.remaining, 50);
    });
}

#[test]
fn a_reservation_on_one_server_is_settled_on_another() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let [one, other] = [(); 2].map(|()| bound(store(&runtime, &redis.url())));
    let limit = hourly(10);
    runtime.block_on(async {
        for i in 0..RATE {
            acquire(&other, &format!("early{i}"), &limit).await.unwrap();
        }
        let mut reserved = 0;
        for i in 0..2 * RATE {
            let (name, id) = (format!("user{i}"), LeaseId::from(u64::from(i)));
            let made = ask(&one, reserve(id), check(&name, &limit)).await;
            if made.allowed {
                reserved += 1;
                let spent = check(&name, &limit).spent(Spent::within_the_limit(3));
                let settled = ask(&other, Verb::Commit(id), spent).await;
                let standing = Standing::Settled { spent: 3, returned: 0 };
                assert_eq!(settled.reservation(), Some(standing), "{name}");
                assert_eq!(ask(&one, Verb::Peek, check(&name, &limit)).await.remaining, 7);
            } else {
                assert_eq!(made.reservation(), Some(Standing::Ended));
                assert_eq!((made.remaining, made.retry_after), (10, Duration::from_secs(1)));
            }
        }
        assert_eq!(reserved, RATE, "within the rate");
    });
    let keys: u32 = redis.cli(&["DBSIZE"]).parse().unwrap();
    assert_eq!(keys, 2 * RATE, "a denied reservation adds no key");
}

#[test]
fn known_subjects_reserve_beyond_the_rate() {
    let cluster = require!(RedisCluster::start(3, 0));
    let runtime = runtime();
    let store = bound(cluster_store(&runtime, &cluster.urls()));
    let limit = hourly(2);
    runtime.block_on(async {
        let names = ["known", "known too"];
        assert!(all_allowed(&store, Verb::Acquire, &names, &limit).await);
        for i in 0..RATE {
            acquire(&store, &format!("early{i}"), &limit).await.unwrap();
        }
        let id = LeaseId::random();
        let with_new = apply(&store, reserve(id), &["known", "new"], &limit).await.unwrap();
        assert_eq!([with_new[0].allowed, with_new[1].allowed], [true, false]);
        assert!(all_allowed(&store, reserve(id), &names, &limit).await, "nothing was taken");
        assert!(!all_allowed(&store, Verb::Acquire, &names, &limit).await, "it is reserved");
        assert!(all_allowed(&store, Verb::Cancel(id), &names, &limit).await);
        assert!(all_allowed(&store, Verb::Acquire, &names, &limit).await, "it was given back");
    });
}

#[test]
fn checks_on_trial_do_not_prevent_a_reservation() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = bound(store(&runtime, &redis.url()));
    let limit = hourly(2);
    runtime.block_on(async {
        acquire(&store, "known", &limit).await.unwrap();
        for i in 0..RATE {
            acquire(&store, &format!("early{i}"), &limit).await.unwrap();
        }
        let trial = check("trial", &limit).with_mode(CheckMode::Optional);
        let batch = Batch::new([check("known", &limit), trial]).unwrap();
        let id = LeaseId::from(1);
        let made = store.apply(reserve(id), &batch).await.unwrap();
        let pending = |outcome: &Outcome| {
            matches!(outcome.reservation(), Some(Standing::Pending { held: 1, .. }))
        };
        assert_eq!([pending(&made[0]), pending(&made[1])], [true, false]);
    });
    assert_eq!(redis.cli(&["EXISTS", "trial"]), "0");
}

/// As a check with a request id: the last one is its mark.
#[test]
fn exact_checks_beyond_the_rate_are_denied_although_they_have_units_left() {
    let redis = require!(Redis::start());
    let runtime = runtime();
    let store = bound(store(&runtime, &redis.url()));
    let (limit, marks) = (hourly(1_000_000), hourly(3));
    let take = async |mark: &str| {
        let two = Check::new(Key::new(mark).unwrap(), &marks, Cost::new(2).unwrap()).unwrap();
        let batch = Batch::new([check("subject", &limit), two.exact()]).unwrap();
        store.apply(Verb::Acquire, &batch).await.unwrap()
    };
    runtime.block_on(async {
        let mut admitted = 0;
        for i in 0..3_000 {
            let outcomes = take(&format!("mark{i}")).await;
            admitted += u64::from(outcomes[1].allowed);
            let room = if outcomes[1].allowed { 1 } else { 3 };
            assert_eq!((outcomes[0].allowed, outcomes[1].remaining), (true, room), "{i}");
            assert_eq!(outcomes[0].remaining, 1_000_000 - admitted, "all or nothing");
        }
        assert_eq!(admitted, u64::from(RATE) - 1, "one was for the subject");
        let reused = take("mark0").await[1];
        assert_eq!((reused.allowed, reused.remaining), (false, 1));
        let unused = ask(&store, Verb::Refund, check("nobody", &limit)).await;
        assert!(unused.allowed);
    });
    let keys: u32 = redis.cli(&["DBSIZE"]).parse().unwrap();
    assert_eq!(keys, RATE, "no shared keys");
}

fn reserve(id: LeaseId) -> Verb {
    Verb::Reserve { id, lease: Duration::from_mins(30) }
}

fn check<'a>(name: &'a str, limit: &'a Limit) -> Check<'a> {
    Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap()
}

async fn ask(store: &dyn Store, verb: Verb, check: Check<'_>) -> Outcome {
    store.apply(verb, &Batch::from(check)).await.unwrap()[0]
}

async fn all_allowed(store: &dyn Store, verb: Verb, names: &[&str], limit: &Limit) -> bool {
    let outcomes = apply(store, verb, names, limit).await.unwrap();
    outcomes.iter().all(|outcome| outcome.allowed)
}
