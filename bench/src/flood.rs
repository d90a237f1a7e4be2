//! A flood of random keys against a store with room for a few.

use std::{fmt::Write, time::Duration};

use headgate::{Cost, Key, Limit};
use headgate_store_memory::MemoryStore;

use crate::{child, random::Random, report::Verdict, rss};

/// Name of the measurement for [`child`].
pub(crate) const MEASUREMENT: &str = "flood";

const CAPACITY: usize = 100_000;
const KEYS: usize = 5_000_000;

/// Memory is flat if the flood adds less than this to a full store.
const FLAT: usize = 1 << 20;

pub(crate) fn report() {
    let numbers = child::ask(MEASUREMENT);
    let [full, peak, after] = numbers[..] else { panic!("three numbers, not {numbers:?}") };
    let megabytes = |bytes: usize| bytes as f64 / f64::from(1 << 20);
    let figure = format!(
        "{:.1} MiB resident when full, {:.1} at the peak of the flood, {:.1} after it",
        megabytes(full),
        megabytes(peak),
        megabytes(after),
    );
    let bound = "memory stays flat in a flood of 5 million random keys at capacity 100,000";
    println!("{}", Verdict::new(bound, peak - full < FLAT, figure));
}

/// Resident bytes with a full store, at the flood's peak and after it.
pub(crate) fn measure() -> [usize; 3] {
    let store = MemoryStore::builder().capacity(CAPACITY).build();
    let limit = Limit::token_bucket(100, Duration::from_mins(10)).expect("a limit");
    let mut random = Random::new(1);
    let mut text = String::new();
    let mut take = |count: usize| {
        for _ in 0..count {
            text.clear();
            write!(text, "flood:{:016x}", random.next()).expect("a String takes any text");
            let key = Key::new(&text).expect("a key");
            store.acquire(key, &limit, Cost::ONE).expect("a cost within the limit");
        }
    };
    let over = Key::new("over-its-limit").expect("a key");
    let all = Cost::new(limit.capacity()).expect("a cost");
    store.acquire(over, &limit, all).expect("a cost within the limit");

    take(2 * CAPACITY);
    let full = rss::now();
    take(KEYS);
    let after = rss::now();
    let decision = store.acquire(over, &limit, all).expect("a cost within the limit");
    assert!(!decision.allowed, "the flood made the store forget a live limit");
    [full, rss::peak(), after]
}
