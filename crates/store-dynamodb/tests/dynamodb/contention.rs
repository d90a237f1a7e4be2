//! Concurrent clients never get more than sequential ones.

use std::{sync::Arc, time::Duration};

use headgate::{Limit, Verb};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_testkit::{DynamoDb, SharedDynamoDb, require};
use tokio::task::JoinSet;

use crate::support::{acquire, apply, store_on};

/// Longer than a test takes on a busy machine.
fn cooldown() -> Limit {
    Limit::cooldown(Duration::from_hours(24)).unwrap()
}

/// Two clients of one table.
async fn clients(server: &SharedDynamoDb) -> [Arc<DynamoDbStore>; 2] {
    let table = server.new_table();
    [Arc::new(store_on(server, &table).await), Arc::new(store_on(server, &table).await)]
}

/// Sends all batches concurrently, alternating between the clients. Returns which were admitted.
async fn fire(
    clients: &[Arc<DynamoDbStore>; 2],
    limit: &Limit,
    batches: impl IntoIterator<Item = Vec<String>>,
) -> Vec<Vec<String>> {
    let mut calls = JoinSet::new();
    for (i, batch) in batches.into_iter().enumerate() {
        let (store, limit) = (Arc::clone(&clients[i % 2]), limit.clone());
        calls.spawn(async move {
            let names: Vec<&str> = batch.iter().map(String::as_str).collect();
            let outcomes = acquire(&*store, &names, &limit).await.unwrap();
            outcomes.iter().all(|outcome| outcome.allowed).then_some(batch)
        });
    }
    calls.join_all().await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_64_concurrent_clients_gets_a_cooldown() {
    let server = require!(DynamoDb::shared());
    let clients = clients(&server).await;
    let batches = (0..64).map(|_| vec!["ip#12ca17b49af22894".to_owned()]);
    assert_eq!(fire(&clients, &cooldown(), batches).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_64_batches_with_a_shared_key_is_admitted_and_the_others_take_nothing() {
    let server = require!(DynamoDb::shared());
    let clients = clients(&server).await;
    let own = |i: usize| format!("nick#{i}");
    let batches = (0..64).map(|i| vec!["ip#one".to_owned(), own(i)]);
    let admitted = fire(&clients, &cooldown(), batches).await;
    let [winner] = &admitted[..] else { panic!("{admitted:?}") };
    for i in 0..64 {
        let outcomes = apply(&*clients[0], Verb::Peek, &[&own(i)], &cooldown()).await.unwrap();
        assert_eq!(outcomes[0].allowed, own(i) != winner[1], "{i}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overlapping_batches_take_all_or_nothing() {
    let server = require!(DynamoDb::shared());
    let clients = clients(&server).await;
    let limit = Limit::fixed_window(10, Duration::from_hours(24 * 366)).unwrap();
    let pairs = [["a", "b"], ["b", "c"], ["c", "a"]].map(|pair| pair.map(str::to_owned).to_vec());
    let admitted = fire(&clients, &limit, (0..60).map(|i| pairs[i % 3].clone())).await;

    let names = ["a", "b", "c"];
    let left = apply(&*clients[1], Verb::Peek, &names, &limit).await.unwrap();
    for (name, outcome) in names.iter().zip(&left) {
        let taken = admitted.iter().flatten().filter(|taken| taken == name).count() as u64;
        assert_eq!(outcome.remaining, 10 - taken, "{name} of {admitted:?}");
    }
    // The last one found two of the three used up.
    let used_up = left.iter().filter(|outcome| outcome.remaining == 0).count();
    assert!(used_up >= 2, "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cooldown_has_one_reservation_at_a_time() {
    let server = require!(DynamoDb::shared());
    let clients = clients(&server).await;
    let limit = cooldown();
    let names = ["ip#r", "nick#r"];
    for _ in 0..3 {
        let mut calls = JoinSet::new();
        for i in 0..16 {
            let (store, limit) = (Arc::clone(&clients[i % 2]), limit.clone());
            calls.spawn(async move {
                let id = headgate::LeaseId::random();
                let reserve = Verb::Reserve { id, lease: Duration::from_secs(600) };
                let outcomes = apply(&*store, reserve, &names, &limit).await.unwrap();
                outcomes.iter().all(|outcome| outcome.allowed).then_some(id)
            });
        }
        let held: Vec<_> = calls.join_all().await.into_iter().flatten().collect();
        let [id] = held[..] else { panic!("{held:?}") };
        // The other client cancels the reservation.
        for verb in [Verb::Cancel(id), Verb::Peek] {
            let outcomes = apply(&*clients[1], verb, &names, &limit).await.unwrap();
            assert!(outcomes.iter().all(|outcome| outcome.allowed), "{verb:?}");
        }
    }
}
