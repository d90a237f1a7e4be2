#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | [`DynamoDbStore`]: read, decide, write; retry if another client was first |
//! | `step` | the effect of a verb on what was read: pure |
//! | `item` | an account as an item, and back |
//! | `table` | requests to DynamoDB: get, put, delete, transact |
//! | `setup` | table creation |
//! | `turns`, `backoff`, `time` | waiting: for calls of this process on the same key, and before a retry |
//! | `config`, `error` | [`DynamoDbConfig`], and the meaning of errors |
//!
//! # The item
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `identifier` | S, the partition key | the subject's key |
//! | `expires_at` | N, the table's TTL attribute | the second at which the subject has all of its allowance again, rounded up |
//! | `version` | N | another with every write |
//! | `state` | M | what the algorithm remembers, and pending reservations |
//!
//! Of a cooldown (a bucket that holds one) other programs can know all from `expires_at`:
//! it limits if and only if `expires_at > now`, whether or not DynamoDB has deleted the
//! item. They may also write such items: where `expires_at` stands alone, or is not the one that
//! `state` was written with, it is what counts. Under any other limit such an item is
//! [`StoreError::Corrupt`](headgate::StoreError::Corrupt) until it has expired.
//!
//! # The clock
//!
//! DynamoDB tells no time, so decisions use the clock of the machine that asks, or the one given to
//! [`DynamoDbStore::with_clock`]. An item remembers when it was last changed: to a client whose clock is behind that,
//! time stands still until it has caught up. Clients should keep their clocks together (NTP): a subject waits as much
//! longer as the clock of the client that took is ahead of the one that asks. DynamoDB deletes by a clock of its own what
//! expired before it: items of a clock that is far behind may go too early.
//!
//! # Bounds
//!
//! [`StoreError::Unsupported`](headgate::StoreError::Unsupported) answers what does not fit: a sliding window (the log)
//! above [`DynamoDbStore::MAX_LOG`], more than [`DynamoDbStore::MAX_KEYS`] keys at once, and keys longer than
//! [`DynamoDbStore::MAX_KEY_BYTES`]. Everything else fits into one item and one transaction.

mod backoff;
mod config;
mod error;
mod item;
mod setup;
mod step;
mod store;
mod table;
mod time;
mod turns;

/// The client's own words, for programs that keep other things in DynamoDB too.
pub use aws_sdk_dynamodb;
pub use config::{ConfigError, DynamoDbConfig, keys};
pub use error::DynamoDbError;
pub use store::DynamoDbStore;
