//! Bytes per key in the memory store.

use std::{error::Error, time::Duration};

use headgate::{Algorithm, Check, Cost, Key, LeaseId, Limit, ManualClock, Timestamp, Verb};
use headgate_store_memory::MemoryStore;
use stats_alloc::Region;

use crate::{ALLOCATOR, roomy};

const KEYS: usize = 100_000;

const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// Allocated bytes per key, with `admitted` requests for each.
pub(crate) fn bytes_per_key(
    algorithm: Algorithm,
    admitted: usize,
) -> Result<usize, Box<dyn Error>> {
    let limit = roomy(algorithm)?;
    let names: Vec<_> = (0..KEYS).map(|key| format!("user:{key}")).collect();
    let clock = ManualClock::new(START);
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

/// Allocated bytes of a subject with one pending reservation.
pub(crate) fn bytes_per_reservation() -> Result<usize, Box<dyn Error>> {
    let limit = roomy(Algorithm::TokenBucket)?;
    bytes_after(&limit, |n| Verb::Reserve {
        id: LeaseId::from(n as u64),
        lease: Duration::from_hours(1),
    })
}

/// Allocated bytes of the mark of a check with a `request_id`: a log with one entry.
pub(crate) fn bytes_per_mark() -> Result<usize, Box<dyn Error>> {
    bytes_after(&Limit::sliding_window(3, Duration::from_hours(24))?, |_| Verb::Acquire)
}

/// Allocated bytes per key after one call for each.
fn bytes_after(limit: &Limit, verb: impl Fn(usize) -> Verb) -> Result<usize, Box<dyn Error>> {
    let names: Vec<_> = (0..KEYS).map(|key| format!("user:{key}")).collect();
    let clock = ManualClock::new(START);
    let store = MemoryStore::builder().capacity(KEYS * 4).clock(&clock).build();
    let region = Region::new(ALLOCATOR);
    for (n, name) in names.iter().enumerate() {
        let check = Check::new(Key::new(name)?, limit, Cost::ONE)?;
        assert!(store.apply_now(verb(n), &check.into())[0].allowed, "there is room");
    }
    let change = region.change();
    Ok((change.bytes_allocated - change.bytes_deallocated) / KEYS)
}
