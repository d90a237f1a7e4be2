//! Random numbers and limits, the same for the same seed.

use std::time::Duration;

use headgate::{Algorithm, Limit, algorithm::Period};

/// A `SplitMix64` generator.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }

    /// A limit of any algorithm that counts units over time, and its window in microseconds.
    pub(super) fn limit(&mut self) -> (Limit, u64) {
        let algorithm = Algorithm::RATES[self.below(Algorithm::RATES.len() as u64) as usize];
        let number = 1 + self.below(60);
        if algorithm == Algorithm::Calendar {
            return (Limit::calendar(number, Period::Day, "UTC").unwrap(), 2_000_000);
        }
        let window = 1_000 + self.below(3_000);
        let limit = Limit::new(algorithm, number, Duration::from_micros(window)).unwrap();
        let burst = 1 + self.below(2 * number);
        (limit.clone().with_burst(burst).unwrap_or(limit), window)
    }
}
