//! Requests to DynamoDB.

use std::collections::HashMap;

use aws_sdk_dynamodb::{
    Client,
    error::BuildError,
    types::{AttributeValue, Delete, KeysAndAttributes, Put, TransactWriteItem},
};
use headgate::{LeaseId, StoreError};

use crate::{
    error::AttemptError,
    item::{Attributes, EXPIRES_AT, Expected, IDENTIFIER, Item, VERSION, number},
};

/// A table and its client.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) client: Client,
    pub(crate) name: String,
}

/// The write of one item.
pub(crate) struct Write<'a> {
    pub(crate) name: &'a str,
    /// `None` overwrites any item.
    pub(crate) expected: Option<Expected>,
    /// `None` deletes the item.
    pub(crate) item: Option<Item>,
}

/// Condition expression of a write.
#[derive(Default)]
struct Condition {
    expression: Option<String>,
    names: Option<HashMap<String, String>>,
    values: Option<HashMap<String, AttributeValue>>,
}

// === impl Table ===

impl Table {
    /// Reads the items of these keys, strongly consistent and in order.
    pub(crate) async fn read(
        &self,
        names: &[String],
    ) -> Result<Vec<Option<Attributes>>, AttemptError> {
        match names {
            [name] => Ok(vec![self.read_one(name).await?]),
            names => self.read_all(names).await,
        }
    }

    async fn read_one(&self, name: &str) -> Result<Option<Attributes>, AttemptError> {
        let get = self.client.get_item().table_name(&self.name).consistent_read(true);
        let response = get.set_key(Some(key(name))).send().await;
        Ok(response.map_err(|error| AttemptError::of(&error))?.item)
    }

    async fn read_all(&self, names: &[String]) -> Result<Vec<Option<Attributes>>, AttemptError> {
        let keys = names.iter().map(|name| key(name)).collect();
        let keys = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
        let get = self.client.batch_get_item().request_items(&self.name, keys.map_err(unbuilt)?);
        let response = get.send().await.map_err(|error| AttemptError::of(&error))?;
        if response.unprocessed_keys.is_some_and(|keys| !keys.is_empty()) {
            return Err(AttemptError::Throttled("UnprocessedKeys".to_owned()));
        }
        let found = response.responses.and_then(|mut tables| tables.remove(&self.name));
        let mut found: HashMap<String, Attributes> = found
            .unwrap_or_default()
            .into_iter()
            .filter_map(|item| Some((item.get(IDENTIFIER)?.as_s().ok()?.clone(), item)))
            .collect();
        Ok(names.iter().map(|name| found.remove(name)).collect())
    }

    /// Writes all items, or none if one of them is not as expected.
    pub(crate) async fn write(&self, mut writes: Vec<Write<'_>>) -> Result<(), AttemptError> {
        match writes.pop() {
            Some(only) if writes.is_empty() => self.write_one(only).await,
            Some(last) => {
                writes.push(last);
                let actions = writes.into_iter().map(|write| self.action(write));
                let actions = actions.collect::<Result<_, _>>().map_err(unbuilt)?;
                let write = self.client.transact_write_items().set_transact_items(Some(actions));
                let done = write.send().await;
                done.map(|_| ()).map_err(|error| AttemptError::of_transaction(&error))
            }
            None => Ok(()),
        }
    }

    async fn write_one(&self, write: Write<'_>) -> Result<(), AttemptError> {
        let Condition { expression, names, values } = Condition::of(write.expected);
        let Some(item) = write.item else {
            let delete = self.client.delete_item().table_name(&self.name);
            let delete = delete.set_key(Some(key(write.name))).set_condition_expression(expression);
            let delete = delete.set_expression_attribute_names(names);
            let done = delete.set_expression_attribute_values(values).send().await;
            return done.map(|_| ()).map_err(|error| AttemptError::of(&error));
        };
        let put = self.client.put_item().table_name(&self.name);
        let put = put.set_item(Some(item.attributes(write.name, new_version())));
        let put = put.set_condition_expression(expression).set_expression_attribute_names(names);
        let done = put.set_expression_attribute_values(values).send().await;
        done.map(|_| ()).map_err(|error| AttemptError::of(&error))
    }

    fn action(&self, write: Write<'_>) -> Result<TransactWriteItem, BuildError> {
        let Condition { expression, names, values } = Condition::of(write.expected);
        let action = TransactWriteItem::builder();
        let Some(item) = write.item else {
            let delete = Delete::builder().table_name(&self.name).set_key(Some(key(write.name)));
            let delete = delete.set_condition_expression(expression);
            let delete = delete.set_expression_attribute_names(names);
            let delete = delete.set_expression_attribute_values(values).build()?;
            return Ok(action.delete(delete).build());
        };
        let put = Put::builder().table_name(&self.name);
        let put = put.set_item(Some(item.attributes(write.name, new_version())));
        let put = put.set_condition_expression(expression).set_expression_attribute_names(names);
        let put = put.set_expression_attribute_values(values).build()?;
        Ok(action.put(put).build())
    }
}

// === impl Condition ===

impl Condition {
    fn of(expected: Option<Expected>) -> Self {
        let (expression, aliases, values) = match expected {
            None => return Self::default(),
            Some(Expected::Nothing) => {
                ("attribute_not_exists(#i)", &[("#i", IDENTIFIER)][..], None)
            }
            Some(Expected::Unchanged { version: None, expires_at }) => (
                "attribute_not_exists(#v) AND #e = :e",
                &[("#v", VERSION), ("#e", EXPIRES_AT)][..],
                Some(HashMap::from([(":e".to_owned(), number(expires_at))])),
            ),
            Some(Expected::Unchanged { version: Some(version), expires_at }) => (
                "#v = :v AND #e = :e",
                &[("#v", VERSION), ("#e", EXPIRES_AT)][..],
                Some(HashMap::from([
                    (":v".to_owned(), number(version)),
                    (":e".to_owned(), number(expires_at)),
                ])),
            ),
        };
        let names = aliases.iter().map(|(alias, name)| ((*alias).to_owned(), (*name).to_owned()));
        Self { expression: Some(expression.to_owned()), names: Some(names.collect()), values }
    }
}

fn key(name: &str) -> Attributes {
    HashMap::from([(IDENTIFIER.to_owned(), AttributeValue::S(name.to_owned()))])
}

/// A random version: it differs from all earlier ones, also from those of deleted items.
fn new_version() -> u64 {
    LeaseId::random().get()
}

/// An incomplete request.
fn unbuilt(error: BuildError) -> AttemptError {
    AttemptError::Permanent(StoreError::unavailable(error))
}
