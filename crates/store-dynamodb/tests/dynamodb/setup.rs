//! Making the table.

use headgate::StoreError;
use headgate_store_dynamodb::{
    DynamoDbStore,
    aws_sdk_dynamodb::types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TimeToLiveStatus,
    },
};
use headgate_testkit::{DynamoDb, require};

use crate::support::{config, store_on};

#[tokio::test]
async fn the_table_has_one_key_no_index_and_expires_by_expires_at() {
    let server = require!(DynamoDb::shared());
    let table = server.new_table();
    let store = store_on(&server, &table).await;
    // Again, beside another who does the same.
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
async fn a_table_of_another_kind_is_left_alone() {
    let server = require!(DynamoDb::shared());
    let table = server.new_table();
    let store = DynamoDbStore::connect(config(server.endpoint(), &table));
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash);
    let id = AttributeDefinition::builder().attribute_name("id");
    let create = store.client().create_table().table_name(&table);
    let create = create.key_schema(key.build().unwrap()).billing_mode(BillingMode::PayPerRequest);
    let id = id.attribute_type(ScalarAttributeType::S).build().unwrap();
    create.attribute_definitions(id).send().await.unwrap();

    let error = store.create_table().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(error.to_string().contains("`identifier`"), "{error}");
}
