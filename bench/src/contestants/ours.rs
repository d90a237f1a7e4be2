use std::hint::black_box;

use headgate::{Cost, Key, Limit};
use headgate_store_memory::MemoryStore;

use crate::{
    contestant::{Contestant, Quota},
    stream::Keys,
};

/// Headgate's memory store, called directly, with a token bucket.
pub(crate) struct Ours {
    store: MemoryStore,
    limit: Limit,
}

impl Ours {
    pub(crate) fn new(quota: Quota, subjects: usize) -> Self {
        // Shards fill unevenly: with room for twice the subjects none overflows.
        let capacity = MemoryStore::CAPACITY.max(2 * subjects);
        let limit = Limit::token_bucket(quota.count.into(), quota.period)
            .and_then(|limit| limit.with_burst(quota.burst.into()))
            .expect("the bench's quotas are limits");
        Self { store: MemoryStore::builder().capacity(capacity).build(), limit }
    }
}

impl Contestant for Ours {
    fn decide(&self, keys: Keys<'_>, cost: u32) -> usize {
        let cost = Cost::new(cost.into()).expect("the bench's costs are costs");
        let mut admitted = 0;
        for text in keys {
            let key = Key::new(text).expect("the bench's keys are keys");
            let decision = self.store.acquire(key, &self.limit, cost).expect("a cost that fits");
            admitted += usize::from(black_box(&decision).allowed);
        }
        admitted
    }
}
