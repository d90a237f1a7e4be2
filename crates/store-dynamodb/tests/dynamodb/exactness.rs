//! Exact agreement with the model.

use std::{rc::Rc, sync::Arc};

use headgate::{Algorithm, Limit, ManualClock, Store, Timestamp};
use headgate_store_conformance::{Fixture, golden, suite};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_testkit::{DynamoDb, SharedDynamoDb, require};
use tokio::{runtime::Runtime, task::JoinSet};

use crate::support::{Scene, runtime, store, store_on};

/// A store as a fixture of the conformance suite.
struct OnDynamoDb {
    store: DynamoDbStore,
    /// The clock, if it can be set.
    clock: Option<Arc<ManualClock>>,
}

impl OnDynamoDb {
    fn at_our_time(runtime: &Runtime, server: &SharedDynamoDb) -> Rc<dyn Fixture> {
        let Scene { store, clock, .. } = runtime.block_on(Scene::new(server));
        Rc::new(Self { store, clock: Some(clock) })
    }
}

impl Fixture for OnDynamoDb {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn set_time(&self, now: Timestamp) -> bool {
        self.clock.as_ref().map(|clock| clock.set(now)).is_some()
    }

    fn claims(&self, limit: &Limit) -> bool {
        let most = match limit.algorithm() {
            Algorithm::SlidingWindow => DynamoDbStore::MAX_LOG,
            Algorithm::Concurrency => DynamoDbStore::MAX_PLACES,
            _ => u64::MAX,
        };
        limit.capacity() <= most
    }
}

#[test]
fn agrees_with_the_model_at_any_time() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    let scenes = || Rc::clone(&fixture);
    suite::agrees_with_the_model(scenes, 128, |scenario| runtime.block_on(scenario));
}

#[test]
fn agrees_with_the_model_on_its_own_time() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let store = runtime.block_on(store(&server));
    let fixture: Rc<dyn Fixture> = Rc::new(OnDynamoDb { store, clock: None });
    let scenes = || Rc::clone(&fixture);
    suite::agrees_with_the_model(scenes, 64, |scenario| runtime.block_on(scenario));
}

#[test]
fn agrees_with_the_model_about_long_logs() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::agrees_with_the_model_about_long_logs(&*fixture));
}

#[test]
fn gives_the_golden_vectors() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(golden::replay(|| Rc::clone(&fixture)));
}

#[test]
fn stands_still_when_its_clock_steps_back() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::stands_still_when_its_clock_steps_back(&*fixture));
}

#[test]
fn refuses_one_reservation_too_many_until_another_ends() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::refuses_one_reservation_too_many_until_another_ends(&*fixture));
}

#[test]
fn a_limit_that_comes_with_a_reservation_raises_no_rate() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::a_limit_that_comes_with_a_reservation_raises_no_rate(&*fixture));
}

#[test]
fn remembers_the_latest_settlements() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::remembers_the_latest_settlements(&*fixture));
}

#[test]
fn streams_stop_at_the_limit() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::streams_stop_at_the_limit(&*fixture));
}

#[test]
fn never_more_holders_than_places() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::never_more_holders_than_places(&*fixture));
}

#[test]
fn a_place_is_free_when_its_lease_ends() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::a_place_is_free_when_its_lease_ends(&*fixture));
}

#[test]
fn lists_the_holders_of_a_subject() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let fixture = OnDynamoDb::at_our_time(&runtime, &server);
    runtime.block_on(suite::lists_the_holders_of_a_subject(&*fixture));
}

#[test]
fn two_clients_never_exceed_the_limit() {
    let server = require!(DynamoDb::shared());
    let runtime = runtime();
    let table = server.new_table();
    let client = || runtime.block_on(store_on(&server, &table));
    let stores = Arc::new([client(), client()]);
    suite::never_admits_more_than_the_limit(2, |shot| {
        let mut clients = JoinSet::new();
        for client in 0..2 {
            let stores = Arc::clone(&stores);
            let fire = async move { shot.fire(&stores[client], "").await };
            clients.spawn_on(fire, runtime.handle());
        }
        runtime.block_on(clients.join_all()).into_iter().sum()
    });
}
