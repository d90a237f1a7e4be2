//! Creation of the table.

use std::time::Duration;

use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata,
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TableDescription, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};
use headgate::StoreError;
use tokio::time::{sleep, timeout};

use crate::{
    DynamoDbError, DynamoDbStore,
    error::unavailable,
    item::{EXPIRES_AT, IDENTIFIER},
    table::Table,
};

/// Timeout of the creation, which takes seconds.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL: Duration = Duration::from_millis(200);

impl DynamoDbStore {
    /// Creates the table with on-demand billing, and enables its TTL. An existing table is kept.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`], with a [`DynamoDbError::Table`] if an existing table has
    /// another key or another TTL attribute.
    pub async fn create_table(&self) -> Result<(), StoreError> {
        let made = async {
            self.table().create().await?;
            self.table().enable_ttl().await
        };
        timeout(TIMEOUT, made).await.map_err(|_| StoreError::Timeout(TIMEOUT))?
    }
}

impl Table {
    async fn create(&self) -> Result<(), StoreError> {
        let key = KeySchemaElement::builder().attribute_name(IDENTIFIER).key_type(KeyType::Hash);
        let attribute = AttributeDefinition::builder().attribute_name(IDENTIFIER);
        let attribute = attribute.attribute_type(ScalarAttributeType::S);
        let create = self.client.create_table().table_name(&self.name);
        let create = create.key_schema(key.build().map_err(StoreError::unavailable)?);
        let create = create
            .attribute_definitions(attribute.build().map_err(StoreError::unavailable)?)
            .billing_mode(BillingMode::PayPerRequest);
        match create.send().await {
            Err(error) if error.code() != Some("ResourceInUseException") => {
                return Err(unavailable(&error));
            }
            _ => {}
        }
        loop {
            let describe = self.client.describe_table().table_name(&self.name);
            let response = describe.send().await.map_err(|error| unavailable(&error))?;
            let table = response.table.ok_or_else(|| self.wrong_schema("it has no description"))?;
            if !has_expected_key(&table) {
                return Err(self.wrong_schema("its key is not the string `identifier` alone"));
            }
            if table.table_status == Some(TableStatus::Active) {
                return Ok(());
            }
            sleep(POLL).await;
        }
    }

    async fn enable_ttl(&self) -> Result<(), StoreError> {
        let describe = self.client.describe_time_to_live().table_name(&self.name);
        let response = describe.send().await.map_err(|error| unavailable(&error))?;
        if let Some(setting) = response.time_to_live_description
            && let Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) =
                setting.time_to_live_status
        {
            return match setting.attribute_name.as_deref() {
                Some(EXPIRES_AT) => Ok(()),
                _ => Err(self.wrong_schema("its TTL attribute is not `expires_at`")),
            };
        }
        let setting = TimeToLiveSpecification::builder().attribute_name(EXPIRES_AT).enabled(true);
        let setting = setting.build().map_err(StoreError::unavailable)?;
        let update = self.client.update_time_to_live().table_name(&self.name);
        let done = update.time_to_live_specification(setting).send().await;
        done.map(|_| ()).map_err(|error| unavailable(&error))
    }

    fn wrong_schema(&self, reason: &'static str) -> StoreError {
        StoreError::unavailable(DynamoDbError::Table { table: self.name.clone(), reason })
    }
}

fn has_expected_key(table: &TableDescription) -> bool {
    let is_string = |attribute: &AttributeDefinition| {
        attribute.attribute_name == IDENTIFIER && attribute.attribute_type == ScalarAttributeType::S
    };
    matches!(table.key_schema(), [key] if key.attribute_name == IDENTIFIER)
        && table.attribute_definitions().iter().any(is_string)
}
