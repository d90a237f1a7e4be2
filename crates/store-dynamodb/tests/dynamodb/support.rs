//! Stores on servers that the tests start.

use std::{collections::HashMap, sync::Arc, time::Duration};

use headgate::{
    Batch, Check, Cost, Key, Limit, ManualClock, Outcomes, Store, StoreError, Timestamp, Verb,
};
use headgate_store_dynamodb::{
    DynamoDbConfig, DynamoDbStore,
    aws_sdk_dynamodb::{
        Client,
        primitives::Blob,
        types::{
            AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
            ScalarAttributeType,
        },
    },
    static_credentials,
};
use headgate_testkit::SharedDynamoDb;
use tokio::runtime::Runtime;

/// 2026-03-08, half a second past midnight.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_772_928_000_500_000);

/// Timeout of tests, which share two cores with the server. Calls of one key wait for each other, and
/// tests make hundreds of them at once.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(10);

pub(crate) const MINUTES: Duration = Duration::from_secs(300);

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn config(endpoint: &str, table: &str) -> DynamoDbConfig {
    let config =
        DynamoDbConfig::new("ap-northeast-1", table, static_credentials("id", "secret")).unwrap();
    config.endpoint(endpoint).unwrap().timeout(TEST_TIMEOUT)
}

/// A store on a table of its own.
pub(crate) async fn store(server: &SharedDynamoDb) -> DynamoDbStore {
    store_on(server, &server.new_table()).await
}

pub(crate) async fn store_on(server: &SharedDynamoDb, table: &str) -> DynamoDbStore {
    let store = DynamoDbStore::connect(config(server.endpoint(), table));
    store.create_table().await.unwrap();
    store
}

/// Creates a table with a string key.
pub(crate) async fn create_table(client: &Client, table: &str, key: &str) {
    let attribute = AttributeDefinition::builder().attribute_name(key);
    let attribute = attribute.attribute_type(ScalarAttributeType::S).build().unwrap();
    let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash);
    let create = client.create_table().table_name(table).attribute_definitions(attribute);
    let create = create.key_schema(schema.build().unwrap());
    create.billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
}

/// A table of its own, with a store on a manual clock and raw access to the items.
pub(crate) struct Scene {
    pub(crate) store: DynamoDbStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) table: String,
}

impl Scene {
    pub(crate) async fn new(server: &SharedDynamoDb) -> Self {
        let (table, clock) = (server.new_table(), Arc::new(ManualClock::new(START)));
        let store = DynamoDbStore::connect(config(server.endpoint(), &table));
        // Without TTL: by the clock of the server, items of the manual clock have long expired.
        create_table(store.client(), &table, "identifier").await;
        Self { store: store.with_clock(Arc::clone(&clock)), clock, table }
    }

    pub(crate) fn client(&self) -> &Client {
        self.store.client()
    }

    /// The raw item of this key.
    pub(crate) async fn item(&self, name: &str) -> Option<HashMap<String, AttributeValue>> {
        let get = self.client().get_item().table_name(&self.table).consistent_read(true);
        get.key("identifier", string(name)).send().await.unwrap().item
    }

    pub(crate) async fn expires_at(&self, name: &str) -> u64 {
        self.item(name).await.unwrap()["expires_at"].as_n().unwrap().parse().unwrap()
    }

    /// Puts a raw item.
    pub(crate) async fn put(&self, name: &str, attributes: &[(&str, AttributeValue)]) {
        let mut put = self.client().put_item().table_name(&self.table);
        put = put.item("identifier", string(name));
        for (name, value) in attributes {
            put = put.item(*name, value.clone());
        }
        put.send().await.unwrap();
    }

    /// Puts a sliding window with these entries, encoded as by the store.
    pub(crate) async fn put_log(&self, name: &str, entries: &[u8]) {
        let expires_at = || number(START.as_secs_ceil() + 60);
        let state = HashMap::from([
            ("at".to_owned(), number(START.as_micros())),
            ("log".to_owned(), AttributeValue::B(Blob::new(entries))),
            ("expires_at".to_owned(), expires_at()),
        ]);
        let state = AttributeValue::M(state);
        let all = [("expires_at", expires_at()), ("version", number(1)), ("state", state)];
        self.put(name, &all).await;
    }

    pub(crate) async fn apply(&self, verb: Verb, name: &str, limit: &Limit) -> headgate::Outcome {
        apply(&self.store, verb, &[name], limit).await.unwrap()[0]
    }
}

pub(crate) fn string(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn number(n: u64) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

pub(crate) fn cooldown() -> Limit {
    Limit::cooldown(MINUTES).unwrap()
}

pub(crate) fn per_minute(limit: u64) -> Limit {
    Limit::token_bucket(limit, Duration::from_secs(60)).unwrap()
}

pub(crate) async fn apply(
    store: &dyn Store,
    verb: Verb,
    names: &[&str],
    limit: &Limit,
) -> Result<Outcomes, StoreError> {
    let check = |name| Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    let batch = Batch::new(names.iter().copied().map(check)).unwrap();
    store.apply(verb, &batch).await
}

pub(crate) async fn acquire(
    store: &dyn Store,
    names: &[&str],
    limit: &Limit,
) -> Result<Outcomes, StoreError> {
    apply(store, Verb::Acquire, names, limit).await
}

/// Retries until the store decides.
pub(crate) async fn acquire_eventually(store: &dyn Store, name: &str, limit: &Limit) -> Outcomes {
    let answered = async {
        loop {
            if let Ok(outcomes) = acquire(store, &[name], limit).await {
                return outcomes;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, answered).await.expect("the store answers")
}
