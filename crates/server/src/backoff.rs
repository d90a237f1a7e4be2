use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// How long to leave somebody alone who keeps failing.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

impl Backoff {
    /// Whether the last attempt failed.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// It works again.
    pub(crate) const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Twice as long as the last time, less up to a half by chance: replicas shall not come together.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failures.min(6)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(1.0 - chance() / 2.0)
    }
}

/// From 0 to 1. No chance is as good as any.
fn chance() -> f64 {
    let mut byte = [0];
    let _ = SystemRandom::new().fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_half_a_minute_and_begins_again() {
        let mut backoff = Backoff::default();
        for millis in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000] {
            let longest = Duration::from_millis(millis);
            let pause = backoff.next();
            assert!((longest / 2..=longest).contains(&pause), "{pause:?} of {longest:?}");
        }
        assert!(backoff.is_failing());
        backoff.reset();
        assert!(!backoff.is_failing());
        assert!(backoff.next() <= FIRST);
    }
}
