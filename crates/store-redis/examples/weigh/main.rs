//! Measures the memory of a key in both stores, and the time of a decision in memory: the figures
//! of `docs/algorithms.md`.
//!
//! ```sh
//! cargo run --release -p headgate-store-redis --example weigh
//! ```
//!
//! It starts a `redis-server` and takes less than a minute.

#![expect(clippy::print_stdout, reason = "the figures are for whoever runs it")]

mod memory;
mod redis;
mod speed;

use std::{alloc::System, error::Error, time::Duration};

use headgate::{Algorithm, Limit, LimitError};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::TokenBucket,
    Algorithm::SlidingWindow,
    Algorithm::SlidingWindowCounter,
    Algorithm::FixedWindow,
    Algorithm::LeakyBucket,
];

/// Numbers of admitted requests: Redis stores long logs differently.
const IN_MEMORY: [usize; 3] = [1, 10, 100];
const ON_REDIS: [usize; 4] = [1, 10, 100, 1_000];

fn main() -> Result<(), Box<dyn Error>> {
    println!("a mark in memory: {} bytes", memory::bytes_per_mark()?);
    println!("a reservation in memory: {} bytes", memory::bytes_per_reservation()?);
    println!("| | bytes in memory | bytes on Redis | ns admitted | ns denied |");
    println!("|---|---|---|---|---|");
    let redis = redis::Scales::start()?;
    for algorithm in ALGORITHMS {
        let in_memory = IN_MEMORY.map(|admitted| memory::bytes_per_key(algorithm, admitted));
        let on_redis = ON_REDIS.map(|admitted| redis.bytes_of_key(algorithm, admitted));
        let (in_memory, on_redis) = (joined(in_memory)?, joined(on_redis)?);
        let [admitted, denied] = speed::of(algorithm)?;
        println!("| `{algorithm}` | {in_memory} | {on_redis} | {admitted} | {denied} |");
    }
    Ok(())
}

/// A limit that is not reached, with a TTL longer than the measurement.
fn roomy(algorithm: Algorithm) -> Result<Limit, LimitError> {
    Limit::new(algorithm, 1_000, Duration::from_hours(24))
}

fn joined<const N: usize>(
    figures: [Result<usize, Box<dyn Error>>; N],
) -> Result<String, Box<dyn Error>> {
    let figures: Result<Vec<_>, _> = figures.into_iter().collect();
    Ok(figures?.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
