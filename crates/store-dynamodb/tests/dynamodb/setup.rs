//! Creation of the table.

use headgate::{ManualClock, StoreError};
use headgate_store_dynamodb::{
    DynamoDbStore,
    aws_sdk_dynamodb::types::{KeyType, TimeToLiveStatus},
};
use headgate_testkit::{DynamoDb, require};

use crate::support::{
    START, TEST_TIMEOUT, acquire, config, cooldown, create_table, store_on, string,
};

#[tokio::test]
async fn the_table_has_one_key_no_index_and_a_ttl() {
    let server = require!(DynamoDb::shared());
    let table = server.new_table();
    let store = store_on(&server, &table).await;
    // Again, concurrently with another client.
    let (one, two) = tokio::join!(store.create_table(), store_on(&server, &table));
    one.unwrap();
    drop(two);

    let made = store.client().describe_table().table_name(&table).send().await.unwrap();
    let made = made.table.unwrap();
    let [key] = made.key_schema() else { panic!("{made:?}") };
    assert_eq!((key.attribute_name(), key.key_type()), ("identifier", &KeyType::Hash));
    assert!(made.global_secondary_indexes().is_empty());
    assert!(made.local_secondary_indexes().is_empty());

    let ttl = store.client().describe_time_to_live().table_name(&table).send().await.unwrap();
    let ttl = ttl.time_to_live_description.unwrap();
    assert_eq!(ttl.attribute_name(), Some("expires_at"));
    assert_eq!(ttl.time_to_live_status(), Some(&TimeToLiveStatus::Enabled));
}

#[tokio::test]
async fn a_table_with_another_schema_is_rejected() {
    let server = require!(DynamoDb::shared());
    let table = server.new_table();
    let store = DynamoDbStore::connect(config(server.endpoint(), &table));
    create_table(store.client(), &table, "id").await;

    let error = store.create_table().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("`identifier`"), "{error}");
}

#[tokio::test]
async fn expired_items_are_deleted_by_the_server() {
    // On DynamoDB Local: the service may take days.
    let server = require!(DynamoDb::start());
    let place = config(&server.endpoint(), "rate-limits");
    let store = DynamoDbStore::connect(place).with_clock(ManualClock::new(START));
    store.create_table().await.unwrap();
    assert!(acquire(&store, &["k"], &cooldown()).await.unwrap()[0].allowed);
    let is_there = async || {
        let get = store.client().get_item().table_name("rate-limits");
        get.key("identifier", string("k")).send().await.unwrap().item.is_some()
    };
    let deleted = async { while is_there().await {} };
    tokio::time::timeout(TEST_TIMEOUT, deleted).await.expect("the item is deleted");
    assert!(acquire(&store, &["k"], &cooldown()).await.unwrap()[0].allowed);
}
