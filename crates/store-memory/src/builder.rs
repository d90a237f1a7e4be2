//! Settings of a store.

use std::thread;

use headgate::{Clock, SystemClock};

use crate::{
    MemoryStore,
    fingerprint::Fingerprints,
    holders::Holders,
    lock::{CacheAligned, Mutex},
    overflow::Overflow,
    shard::Shard,
};

/// Builds a [`MemoryStore`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<C = SystemClock> {
    capacity: usize,
    overflow_bytes: usize,
    clock: C,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            capacity: MemoryStore::CAPACITY,
            overflow_bytes: MemoryStore::OVERFLOW_BYTES,
            clock: SystemClock::new(),
        }
    }
}

impl<C: Clock> Builder<C> {
    /// Fewest slots per shard.
    const MIN_PER_SHARD: usize = 1024;

    /// Sets the number of slots, from 1 to a billion: see [`MemoryStore::len`]. There may be as
    /// many holders of concurrency limits besides.
    pub fn capacity(self, capacity: usize) -> Self {
        Self { capacity: capacity.clamp(1, 1_000_000_000), ..self }
    }

    /// Sets the size of the sketch that counts new keys while the store is full: 4 KiB to 1 GiB. An
    /// eighth of it is allocated for each group of limits that needs it.
    ///
    /// A new key is denied by mistake with a probability of at most `(n / (limit * width))^4`,
    /// where `n` is the number of units that new keys took within the limit's window and `width` is
    /// the number of bytes over 256.
    pub fn overflow_bytes(self, bytes: usize) -> Self {
        Self { overflow_bytes: bytes.min(1 << 30), ..self }
    }

    /// Sets the clock.
    pub fn clock<D: Clock>(self, clock: D) -> Builder<D> {
        let Self { capacity, overflow_bytes, .. } = self;
        Builder { capacity, overflow_bytes, clock }
    }

    /// Builds the store.
    pub fn build(self) -> MemoryStore<C> {
        let threads = thread::available_parallelism().map_or(8, usize::from);
        let wanted = (threads * 32).next_power_of_two();
        let most = (self.capacity / Self::MIN_PER_SHARD).max(1);
        let count = wanted.min((most + 1).next_power_of_two() / 2).max(1);
        let capacity = self.capacity.div_ceil(count);
        let holders = Holders::at_most(self.capacity);
        let shard = || CacheAligned(Mutex::new(Shard::new(capacity, holders.clone())));
        MemoryStore {
            clock: self.clock,
            fingerprints: Fingerprints::default(),
            shards: (0..count).map(|_| shard()).collect(),
            overflow: Overflow::new(self.overflow_bytes),
            holders: holders.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_stores_have_many_shards_and_small_ones_few() {
        let shards = |capacity| Builder::new().capacity(capacity).build().shards.len();
        let most = (thread::available_parallelism().unwrap().get() * 32).next_power_of_two();
        let expected =
            [(1, 1), (2_047, 1), (2_048, 2), (4_095, 2), (4_096, 4), (1_000_000_000, most)];
        for (capacity, count) in expected {
            assert_eq!(shards(capacity), count.min(most), "{capacity} slots");
        }
    }
}
