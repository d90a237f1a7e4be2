//! Ranks whose frequency falls as 1/rank: a few busy subjects, many quiet ones.

use crate::random::Random;

/// Zipf's law with exponent 1 over `0..count`.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Cumulative frequency, by rank.
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let add = |rank| {
            sum += 1.0 / rank as f64;
            sum
        };
        Self { cumulative: (1..=count).map(add).collect() }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let most = self.cumulative.last().copied().unwrap_or_default();
        let at = random.unit() * most;
        self.cumulative.partition_point(|sum| *sum <= at).min(self.cumulative.len() - 1)
    }
}
