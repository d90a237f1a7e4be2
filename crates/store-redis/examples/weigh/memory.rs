//! Bytes per key in the memory store.

use std::{error::Error, time::Duration};

use headgate::{Algorithm, Cost, Key, ManualClock, Timestamp};
use headgate_store_memory::MemoryStore;
use stats_alloc::Region;

use crate::{ALLOCATOR, roomy};

const KEYS: usize = 100_000;

/// Allocated bytes per key, with `admitted` requests for each.
pub(crate) fn bytes_per_key(
    algorithm: Algorithm,
    admitted: usize,
) -> Result<usize, Box<dyn Error>> {
    let limit = roomy(algorithm)?;
    let names: Vec<_> = (0..KEYS).map(|key| format!("user:{key}")).collect();
    let clock = ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000));
    // A log takes one slot per entry.
    let store = MemoryStore::builder().capacity(KEYS * 200).clock(&clock).build();
    let region = Region::new(ALLOCATOR);
    for _ in 0..admitted {
        clock.advance(Duration::from_millis(1));
        for name in &names {
            let outcome = store.acquire(Key::new(name)?, &limit, Cost::ONE)?;
            assert!(outcome.allowed, "the limit is roomy");
        }
    }
    let change = region.change();
    Ok((change.bytes_allocated - change.bytes_deallocated) / KEYS)
}
