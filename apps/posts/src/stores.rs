//! Stores of cooldowns.

use std::sync::Arc;

use headgate::{BatchLimiter, Breaker, Clock};
use headgate_store_dynamodb::DynamoDbStore;
use headgate_store_memory::MemoryStore;

use crate::denials::RememberedDenials;

/// Cooldowns in memory, for this process only.
pub fn in_memory(clock: Arc<dyn Clock>) -> BatchLimiter {
    BatchLimiter::new(MemoryStore::builder().clock(clock).build())
}

/// Cooldowns in DynamoDB, for any number of processes. A circuit breaker opens after a few failures
/// in a row and retries every half second, so that an outage does not delay every post. Denials are
/// repeated during an outage, until they expire.
pub fn in_dynamodb(store: DynamoDbStore, clock: Arc<dyn Clock>) -> BatchLimiter {
    let store = Breaker::new(store, Arc::clone(&clock));
    BatchLimiter::new(RememberedDenials::new(store, clock))
}
