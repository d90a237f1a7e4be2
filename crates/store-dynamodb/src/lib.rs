#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`DynamoDbStore`]: read, decide, write; retry if another client was first |
//! | `transition` | the effect of a verb on the items read, without I/O |
//! | `item` | an account as an item, and back |
//! | `table` | requests to DynamoDB: get, put, delete, transact |
//! | `setup` | table creation |
//! | `key_locks` | local locks that reduce contention within a process |
//! | `backoff`, `time_budget` | retries, and the timeout of a decision |
//! | `config`, `error` | [`DynamoDbConfig`], and errors |
//!
//! # The item
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `identifier` | S, the partition key | the key |
//! | `expires_at` | N, the TTL attribute | Unix time when the full limit is available again, rounded up |
//! | `version` | N | changes with every write |
//! | `state` | M | state of the algorithm, and pending reservations |
//!
//! Other programs can read a cooldown (a bucket of one) from `expires_at` alone: it is active if
//! and only if `expires_at > now`, whether or not DynamoDB has deleted the item. They may also
//! write such items: an `expires_at` without `state`, or another one than `state` was written with,
//! takes precedence. Under any other limit, such an item is
//! [`StoreError::Corrupt`](headgate::StoreError::Corrupt) until it expires.
//!
//! # The clock
//!
//! DynamoDB does not report its time, so decisions use the clock of the client, or that of
//! [`DynamoDbStore::with_clock`]. An item has the time of its last change: for a client whose clock
//! is behind that, time does not advance until its clock has caught up. Synchronise the clocks of
//! clients (NTP): a wait is longer by as much as the clock of the client that took the unit is
//! ahead of that of the client that asks. DynamoDB deletes expired items by its own clock, so a
//! client whose clock is far behind may lose items early.
//!
//! # Bounds
//!
//! [`StoreError::Unsupported`](headgate::StoreError::Unsupported) is returned for sliding windows
//! (the log) above [`DynamoDbStore::MAX_LOG`], more than [`DynamoDbStore::MAX_KEYS`] keys in a
//! batch, and keys longer than [`DynamoDbStore::MAX_KEY_BYTES`]. Everything else fits into one item
//! and one transaction.

mod backoff;
mod config;
mod error;
mod item;
mod key_locks;
mod setup;
mod store;
mod table;
mod time_budget;
mod transition;

/// The AWS SDK of this crate, for [`DynamoDbStore::client`].
pub use aws_sdk_dynamodb;
pub use config::{DynamoDbConfig, DynamoDbConfigError, static_credentials};
pub use error::DynamoDbError;
pub use store::DynamoDbStore;
