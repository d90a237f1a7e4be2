//! Posts in a DynamoDB table.

use std::{collections::HashMap, error::Error as StdError, iter, time::Duration};

use async_trait::async_trait;
use headgate_store_dynamodb::aws_sdk_dynamodb::{
    Client,
    config::retry::RetryConfig,
    error::ProvideErrorMetadata,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
        ScalarAttributeType, TableStatus,
    },
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{PostRepository, RepositoryError};
use crate::post::Post;

/// Posts in a DynamoDB table, by `id`.
#[derive(Debug)]
pub struct DynamoDbPosts {
    client: Client,
    table: String,
}

/// Timeout of creating a table, and the interval at which its state is polled.
const CREATE_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);

// === impl DynamoDbPosts ===

impl DynamoDbPosts {
    /// Posts in `table`.
    pub fn new(client: &Client, table: String) -> Self {
        // Writes are idempotent: retries are safe.
        let retry = RetryConfig::standard();
        let config = client.config().to_builder().retry_config(retry).build();
        Self { client: Client::from_conf(config), table }
    }

    /// Creates the table if it is missing.
    pub async fn create_table(&self) -> Result<(), RepositoryError> {
        let created = timeout(CREATE_TIMEOUT, self.create()).await;
        created.unwrap_or(Err(RepositoryError::Timeout(CREATE_TIMEOUT)))
    }

    async fn create(&self) -> Result<(), RepositoryError> {
        let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash);
        let id = AttributeDefinition::builder().attribute_name("id");
        let id = id.attribute_type(ScalarAttributeType::S);
        let create = self.client.create_table().table_name(&self.table);
        let create = create
            .key_schema(key.build().map_err(RepositoryError::failed)?)
            .attribute_definitions(id.build().map_err(RepositoryError::failed)?)
            .billing_mode(BillingMode::PayPerRequest);
        match create.send().await {
            Err(error) if error.code() != Some("ResourceInUseException") => {
                return Err(with_causes(error));
            }
            _ => {}
        }
        loop {
            let describe = self.client.describe_table().table_name(&self.table);
            let table = describe.send().await.map_err(with_causes)?.table;
            if table.and_then(|table| table.table_status) == Some(TableStatus::Active) {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }
}

#[async_trait]
impl PostRepository for DynamoDbPosts {
    async fn save(&self, post: &Post) -> Result<(), RepositoryError> {
        let put = self.client.put_item().table_name(&self.table).set_item(Some(item(post)));
        put.send().await.map(drop).map_err(with_causes)
    }

    async fn find(&self, id: Uuid) -> Result<Option<Post>, RepositoryError> {
        let get = self.client.get_item().table_name(&self.table).consistent_read(true);
        let found = get.key("id", AttributeValue::S(id.to_string())).send().await;
        found.map_err(with_causes)?.item.map(|item| read(id, &item)).transpose()
    }
}

/// `created_at` is a string, as other programs expect it.
fn item(post: &Post) -> HashMap<String, AttributeValue> {
    let attribute =
        |name: &str, value: &str| (name.to_owned(), AttributeValue::S(value.to_owned()));
    HashMap::from([
        attribute("id", &post.id.to_string()),
        attribute("nickname", &post.nickname),
        attribute("body", &post.body),
        attribute("status", &post.status),
        attribute("created_at", &post.created_at.to_string()),
    ])
}

fn read(id: Uuid, item: &HashMap<String, AttributeValue>) -> Result<Post, RepositoryError> {
    let text = |name: &'static str| match item.get(name) {
        Some(AttributeValue::S(text)) => Ok(text.clone()),
        _ => Err(RepositoryError::NoPost(name)),
    };
    Ok(Post {
        id,
        nickname: text("nickname")?,
        body: text("body")?,
        status: text("status")?,
        created_at: text("created_at")?
            .parse()
            .map_err(|_| RepositoryError::NoPost("created_at"))?,
    })
}

/// Joins the causes of an SDK error, which has its details there.
fn with_causes(error: impl StdError) -> RepositoryError {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    let text = causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"));
    RepositoryError::failed(text)
}
