//! Stores of cooldowns.

use std::sync::Arc;

use headgate::{BatchLimiter, Breaker, Clock};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_store_memory::MemoryStore;

/// Cooldowns in memory, for this process only.
pub fn in_memory(clock: Arc<dyn Clock>) -> BatchLimiter {
    BatchLimiter::new(MemoryStore::builder().clock(clock).build())
}

/// Cooldowns in DynamoDB, for any number of processes. A circuit breaker opens after a few failures
/// in a row and retries every half second, so that an outage does not delay every post.
pub fn in_dynamodb(store: DynamoDbStore, clock: Arc<dyn Clock>) -> BatchLimiter {
    BatchLimiter::new(Breaker::new(store, clock))
}
