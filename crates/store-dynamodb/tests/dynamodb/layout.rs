//! Layout of the items.

use std::{collections::BTreeSet, time::Duration};

use headgate::{
    Algorithm, Batch, Check, Cost, Key, KeySpace, LeaseId, Limit, Store, StoreError, Verb,
    algorithm::Period,
};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_testkit::{DynamoDb, require};

use crate::support::{START, Scene, acquire, apply, cooldown, per_minute};

#[tokio::test]
async fn a_cooldown_is_an_identifier_and_its_expiry() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let name = "ip#12ca17b49af22894";
    assert!(scene.apply(Verb::Acquire, name, &cooldown()).await.allowed);

    let item = scene.item(name).await.unwrap();
    let names: BTreeSet<&str> = item.keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["expires_at", "identifier", "state", "version"]));
    assert_eq!(item["identifier"].as_s().unwrap(), name);
    // Taken half a second past a whole one, so it ends half a second past one, rounded up in
    // `expires_at`.
    assert_eq!(item["expires_at"].as_n().unwrap(), "1772928301");
    assert_eq!(START.as_micros() + 300_000_000, 1_772_928_300_500_000);
}

#[tokio::test]
async fn a_reserved_cooldown_ends_with_its_lease_and_a_committed_one_with_the_cooldown() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let id = LeaseId::from(7);
    let reserve = Verb::Reserve { id, lease: Duration::from_secs(10) };
    assert!(scene.apply(reserve, "k", &cooldown()).await.allowed);
    assert_eq!(scene.expires_at("k").await, 1_772_928_011);
    assert!(!scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);

    assert!(scene.apply(Verb::Commit(id), "k", &cooldown()).await.allowed);
    assert_eq!(scene.expires_at("k").await, 1_772_928_301);

    assert!(scene.apply(reserve, "l", &cooldown()).await.allowed);
    assert!(scene.apply(Verb::Cancel(id), "l", &cooldown()).await.allowed);
    assert!(scene.item("l").await.is_none(), "nothing is left to remember");
}

#[tokio::test]
async fn a_denial_writes_nothing() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    assert!(scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);
    let before = scene.item("k").await;
    scene.clock.advance(Duration::from_secs(299));
    assert!(!scene.apply(Verb::Acquire, "k", &cooldown()).await.allowed);
    assert!(scene.apply(Verb::Peek, "other", &cooldown()).await.allowed);
    assert_eq!(scene.item("k").await, before);
    assert!(scene.item("other").await.is_none());
}

#[tokio::test]
async fn every_item_of_every_algorithm_and_verb_expires() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let id = LeaseId::from(1);
    let verbs = [
        Verb::Acquire,
        Verb::Reserve { id, lease: Duration::from_secs(9) },
        Verb::Commit(id),
        Verb::Refund,
    ];
    for algorithm in Algorithm::ALL {
        let limit = match algorithm {
            Algorithm::Calendar => Limit::calendar(9, Period::Day, "UTC"),
            algorithm => Limit::new(algorithm, 9, Duration::from_secs(60)),
        };
        let limit = limit.unwrap();
        for verb in verbs {
            let outcome = scene.apply(verb, algorithm.name(), &limit).await;
            assert!(outcome.allowed, "{algorithm} {verb:?}");
            let expires_at = scene.expires_at(algorithm.name()).await;
            let free_at = (outcome.at + outcome.reset_after).as_secs_ceil();
            let lease_ends_at = 1_772_928_010;
            let pending = matches!(verb, Verb::Reserve { .. });
            let expected = if pending { free_at.max(lease_ends_at) } else { free_at };
            assert_eq!(expires_at, expected, "{algorithm} {verb:?}");
        }
    }
}

#[tokio::test]
async fn a_reset_deletes_the_key() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let limit = per_minute(5);
    acquire(&scene.store, &["a", "b"], &limit).await.unwrap();
    let outcomes = apply(&scene.store, Verb::Reset, &["a", "b", "c"], &limit).await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.allowed && outcome.remaining == 5));
    assert!(scene.item("a").await.is_none() && scene.item("b").await.is_none());
}

#[tokio::test]
async fn unsupported_limits_and_keys_are_rejected() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let refused = async |names: &[&str], limit: &Limit| {
        let error = acquire(&scene.store, names, limit).await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
        assert!(!error.is_outage());
        error.to_string()
    };
    let log = |limit| Limit::sliding_window(limit, Duration::from_secs(60)).unwrap();
    let error = refused(&["log"], &log(DynamoDbStore::MAX_LOG + 1)).await;
    assert!(error.contains("2,000") && error.contains("sliding_window_counter"), "{error}");

    let many: Vec<String> = (0..=DynamoDbStore::MAX_KEYS).map(|i| i.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refused(&many, &cooldown()).await.contains("100 keys"));

    let (prefix, limit) = ("x".repeat(DynamoDbStore::MAX_KEY_BYTES), cooldown());
    let space = KeySpace::new(&prefix, "");
    let key = Key::new("k").unwrap().within(&space);
    let batch = Batch::from(Check::new(key, &limit, Cost::ONE).unwrap());
    let error = scene.store.apply(Verb::Acquire, &batch).await.unwrap_err();
    assert!(matches!(error, StoreError::Unsupported(_)), "{error}");
}

#[tokio::test]
async fn the_largest_supported_batch_fits_into_one_transaction() {
    let server = require!(DynamoDb::shared());
    let scene = Scene::new(&server).await;
    let limit = Limit::sliding_window(DynamoDbStore::MAX_LOG, Duration::from_secs(60)).unwrap();
    let names: Vec<String> = (0..DynamoDbStore::MAX_KEYS).map(|i| i.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // All but one unit taken, each in an entry of its own.
    let entries: Vec<u8> = (0..DynamoDbStore::MAX_LOG - 1)
        .flat_map(|i| {
            let at = (START.as_micros() - 1_000_000 + i).to_be_bytes();
            at.into_iter().chain(1_u32.to_be_bytes()).collect::<Vec<_>>()
        })
        .collect();
    for name in &names {
        scene.put_log(name, &entries).await;
    }
    let outcomes = acquire(&scene.store, &names, &limit).await.unwrap();
    assert!(outcomes.iter().all(|outcome| outcome.allowed && outcome.remaining == 0));
    let outcomes = acquire(&scene.store, &names, &limit).await.unwrap();
    assert!(outcomes.iter().all(|outcome| !outcome.allowed));
}
