//! The access log: a sample of the requests that were answered.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Fraction;

/// Target of its lines, for filters such as `RUST_LOG=info,headgate::access=off`.
pub const ACCESS: &str = "headgate::access";

/// Picks the requests of the access log, evenly spaced.
#[derive(Debug)]
pub struct AccessLog {
    /// The fraction of requests, times 2^64; `None` for all.
    step: Option<u64>,
    /// Sum of the steps, modulo 2^64: a request whose step overflows it is picked.
    sum: AtomicU64,
}

impl AccessLog {
    /// Picks this fraction of the requests.
    pub fn new(sample: Fraction) -> Self {
        let step = (sample.get() < 1.0).then(|| (sample.get() * u64::MAX as f64) as u64);
        Self { step, sum: AtomicU64::new(0) }
    }

    /// Returns true if this request is logged.
    pub fn picks(&self) -> bool {
        match self.step {
            None => true,
            Some(0) => false,
            Some(step) => self.sum.fetch_add(step, Relaxed).checked_add(step).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_the_configured_fraction() {
        for (sample, expected) in [("0", 0), ("0.01", 10), ("0.25", 250), ("1", 1000)] {
            let log = AccessLog::new(Fraction::try_from(sample.to_owned()).unwrap());
            let picked = (0..1000).filter(|_| log.picks()).count();
            assert!(picked.abs_diff(expected) <= 1, "{picked} of 1000 with {sample}");
        }
    }
}
