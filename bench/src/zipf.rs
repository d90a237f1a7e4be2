//! Ranks whose frequency falls as 1/rank: a few busy subjects, many quiet ones.

use crate::random::Random;

/// Zipf's law with exponent 1 over `0..count`.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// Cumulative share of all traffic, by rank.
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        for share in &mut cumulative {
            *share /= sum;
        }
        Self { cumulative }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let at = random.unit();
        self.cumulative.partition_point(|share| *share <= at).min(self.cumulative.len() - 1)
    }
}
