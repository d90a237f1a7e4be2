//! Items in DynamoDB.

use std::collections::HashMap;

use headgate_store_dynamodb::{
    DynamoDbConfig,
    aws_sdk_dynamodb::{
        Client,
        types::{AttributeValue, TimeToLiveStatus},
    },
    static_credentials,
};
use headgate_testkit::{SharedDynamoDb, require};

use crate::harness::{self, START, Server};

type Item = HashMap<String, AttributeValue>;

fn client(dynamodb: &SharedDynamoDb) -> Client {
    let config =
        DynamoDbConfig::new("ap-northeast-1", "unused", static_credentials("local", "local"))
            .unwrap();
    config.endpoint(dynamodb.endpoint()).unwrap().client()
}

fn number(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

#[tokio::test]
async fn a_post_stores_hashes_and_their_expiry() {
    let dynamodb = require!(harness::dynamodb().await);
    let (client, server) = (client(&dynamodb), Server::on_dynamodb(&dynamodb).await);
    server.post("10.0.0.1", "太郎", "テスト投稿").await.is_created();

    let items = client.scan().table_name(&server.table).consistent_read(true).send().await;
    let items: Vec<Item> = items.unwrap().items.unwrap();
    let expires_at = |identifier: &str| {
        let found = items.iter().find(|item| {
            matches!(&item["identifier"], AttributeValue::S(name) if name.starts_with(identifier))
        });
        found.unwrap_or_else(|| panic!("{identifier} is not there"))["expires_at"].clone()
    };
    assert_eq!(expires_at("ip#f5047344122f0dee"), number(START + 300));
    assert_eq!(expires_at("nick#3e63216aec8dbdf6"), number(START + 300));
    assert_eq!(expires_at("body#"), number(START + 86_400));
    assert_eq!(items.len(), 3);
    let text = format!("{items:?}");
    assert!(!text.contains("10.0.0.1") && !text.contains("太郎") && !text.contains("テスト"));
}

#[tokio::test]
async fn the_table_has_one_key_no_index_and_a_ttl() {
    let dynamodb = require!(harness::dynamodb().await);
    let (client, server) = (client(&dynamodb), Server::on_dynamodb(&dynamodb).await);
    let table = client.describe_table().table_name(&server.table).send().await;
    let table = table.unwrap().table.unwrap();
    assert_eq!(table.key_schema().len(), 1);
    assert_eq!(table.key_schema()[0].attribute_name(), "identifier");
    assert!(table.global_secondary_indexes().is_empty());
    let ttl = client.describe_time_to_live().table_name(&server.table).send().await;
    let ttl = ttl.unwrap().time_to_live_description.unwrap();
    assert_eq!(ttl.attribute_name.as_deref(), Some("expires_at"));
    assert_eq!(ttl.time_to_live_status, Some(TimeToLiveStatus::Enabled));
}

/// Items as another program writes them, which DynamoDB has not deleted.
#[tokio::test]
async fn an_item_limits_until_it_expires() {
    let dynamodb = require!(harness::dynamodb().await);
    let (client, server) = (client(&dynamodb), Server::on_dynamodb(&dynamodb).await);
    for identifier in ["ip#f5047344122f0dee", "nick#3e63216aec8dbdf6"] {
        for (expires_at, limits) in [(START + 1, true), (START, false), (START - 1, false)] {
            let put = client.put_item().table_name(&server.table);
            let put = put.item("identifier", AttributeValue::S(identifier.to_owned()));
            put.item("expires_at", number(expires_at)).send().await.unwrap();
            // Invalid, so that it starts no cooldown for the next round.
            let reply = server.post("10.0.0.1", "太郎", "短").await;
            let expected = if limits { 429 } else { 422 };
            assert_eq!(reply.status, expected, "{identifier}: {}", reply.text);
        }
    }
    server.post("10.0.0.1", "太郎", "テスト投稿").await.is_created();
}
