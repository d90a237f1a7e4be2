use prometheus::{Histogram, core::Metric};

use super::DECISION_BUCKETS as BUCKETS;

/// All decisions since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Admitted.
    pub allowed: u64,
    /// Denied.
    pub denied: u64,
    /// Decided without the store.
    pub degraded: u64,
    /// Decisions within each bucket's bound; the last counts all.
    within: [u64; BUCKETS.len() + 1],
}

impl Totals {
    /// Adds the decisions that `duration` counted; its bounds are [`DECISION_BUCKETS`][BUCKETS].
    pub fn observe(&mut self, duration: &Histogram) {
        let metric = duration.metric();
        let histogram = metric.get_histogram();
        for (within, bucket) in self.within.iter_mut().zip(histogram.get_bucket()) {
            *within += bucket.cumulative_count();
        }
        self.within[BUCKETS.len()] += histogram.get_sample_count();
    }

    /// Returns the decisions since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut within = self.within;
        for (now, then) in within.iter_mut().zip(earlier.within) {
            *now = now.saturating_sub(then);
        }
        Self {
            allowed: self.allowed.saturating_sub(earlier.allowed),
            denied: self.denied.saturating_sub(earlier.denied),
            degraded: self.degraded.saturating_sub(earlier.degraded),
            within,
        }
    }

    /// Returns the duration quantile in microseconds, interpolated between the bounds of its bucket; `None`
    /// without decisions.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let all = self.within[BUCKETS.len()];
        if all == 0 {
            return None;
        }
        let rank = all as f64 * part;
        let place = self.within.iter().position(|count| *count as f64 >= rank)?;
        let Some(upper) = BUCKETS.get(place) else {
            return BUCKETS.last().map(|most| most * 1e6);
        };
        let (lower, before) = match place.checked_sub(1) {
            Some(last) => (BUCKETS[last], self.within[last]),
            None => (0.0, 0),
        };
        let inside = (self.within[place] - before).max(1) as f64;
        Some((lower + (upper - lower) * (rank - before as f64) / inside) * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use prometheus::HistogramOpts;

    use super::*;

    fn of(seconds: &[f64]) -> Totals {
        let opts = HistogramOpts::new("took", "Time.").buckets(BUCKETS.into());
        let histogram = Histogram::with_opts(opts).unwrap();
        for took in seconds {
            histogram.observe(*took);
        }
        let mut totals = Totals::default();
        totals.observe(&histogram);
        totals
    }

    #[test]
    fn a_quantile_is_between_the_bounds_of_its_bucket() {
        let totals = of(&[[0.000_004; 98].as_slice(), &[0.03, 0.03]].concat());
        let (half, most) = (totals.quantile(0.5).unwrap(), totals.quantile(0.99).unwrap());
        assert!((2.5..=5.0).contains(&half), "{half}");
        assert!((10_000.0..=50_000.0).contains(&most), "{most}");
        assert_eq!(of(&[7.0]).quantile(0.5), Some(1_000_000.0));
        assert_eq!(of(&[]).quantile(0.5), None);
    }

    #[test]
    fn only_new_decisions_count() {
        let (before, after) = (of(&[0.1]), of(&[0.1, 0.000_001]));
        let new = after.since(&before);
        assert_eq!(new.within[BUCKETS.len()], 1);
        assert!(new.quantile(0.99).unwrap() <= 1.0);
    }
}
