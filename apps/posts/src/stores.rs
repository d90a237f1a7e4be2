//! Who keeps cooldowns.

use std::sync::Arc;

use headgate::{BatchLimiter, Breaker, Clock};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_store_memory::MemoryStore;

/// Cooldowns in this process, and of this process alone.
pub fn in_memory(clock: Arc<dyn Clock>) -> BatchLimiter {
    BatchLimiter::new(MemoryStore::builder().clock(clock).build())
}

/// Cooldowns in DynamoDB, for any number of processes. When it has failed a few times in a row, it is
/// left alone for half a second at a time, so that an outage does not make every post wait.
pub fn in_dynamodb(store: DynamoDbStore, clock: Arc<dyn Clock>) -> BatchLimiter {
    BatchLimiter::new(Breaker::new(store, clock))
}
