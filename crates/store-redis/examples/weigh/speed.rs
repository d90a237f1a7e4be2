//! Time of a decision in the memory store, on one thread.

use std::{error::Error, hint::black_box, time::Duration};

use headgate::{Algorithm, Clock, Cost, Key, Limit, SystemClock};
use headgate_store_memory::MemoryStore;

const KEYS: usize = 10_000;
const PASSES: usize = 10;
const ROUNDS: usize = 50;

/// Nanoseconds of an admission and of a denial.
pub(crate) fn of(algorithm: Algorithm) -> Result<[u64; 2], Box<dyn Error>> {
    let day = Duration::from_hours(24);
    Ok([
        fastest(&Limit::new(algorithm, 1_000, day)?, true)?,
        fastest(&Limit::new(algorithm, 1, day)?, false)?,
    ])
}

/// The fastest of many short rounds, which is the least disturbed.
fn fastest(limit: &Limit, allowed: bool) -> Result<u64, Box<dyn Error>> {
    let rounds = (0..ROUNDS).map(|_| round(limit, allowed)).collect::<Result<Vec<_>, _>>()?;
    Ok(rounds.into_iter().min().unwrap_or_default())
}

fn round(limit: &Limit, allowed: bool) -> Result<u64, Box<dyn Error>> {
    let names: Vec<_> = (0..KEYS).map(|key| format!("user:{key}")).collect();
    let store = MemoryStore::builder().capacity(KEYS * PASSES * 2).build();
    let pass = || -> Result<usize, Box<dyn Error>> {
        let mut admitted = 0;
        for name in &names {
            let outcome = store.acquire(Key::new(black_box(name))?, limit, Cost::ONE)?;
            admitted += usize::from(outcome.allowed);
        }
        Ok(admitted)
    };
    // Every key exists and has had one request.
    assert_eq!(pass()?, KEYS, "newcomers are admitted");
    let clock = SystemClock::new();
    let start = clock.now();
    for _ in 0..PASSES {
        assert_eq!(pass()?, if allowed { KEYS } else { 0 }, "all alike");
    }
    let micros = clock.now().since(start);
    Ok(micros * 1_000 / (KEYS * PASSES) as u64)
}
