use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

/// Exponential backoff with jitter, from half a second to half a minute.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

const FIRST: Duration = Duration::from_millis(500);
const MAX: Duration = Duration::from_secs(30);

impl Backoff {
    /// Returns `true` if the last attempt failed.
    pub const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Records a success: the next pause is the shortest again.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Records a failure and returns the pause before the next attempt.
    ///
    /// The pause doubles with every failure; up to half of it is taken off at random, so that
    /// replicas do not retry in step.
    pub fn next_pause(&mut self) -> Duration {
        let full = FIRST.saturating_mul(1 << self.failures.min(6)).min(MAX);
        self.failures = self.failures.saturating_add(1);
        full.mul_f64(1.0 - random_fraction() / 2.0)
    }
}

/// Returns a random number from 0 to 1; 0 if the system has no randomness.
fn random_fraction() -> f64 {
    let mut byte = [0];
    let _ = SystemRandom::new().fill(&mut byte);
    f64::from(byte[0]) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_start_over_after_a_reset() {
        let mut backoff = Backoff::default();
        for millis in [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000] {
            let longest = Duration::from_millis(millis);
            let pause = backoff.next_pause();
            assert!((longest / 2..=longest).contains(&pause), "{pause:?} of {longest:?}");
        }
        assert!(backoff.is_failing());
        backoff.reset();
        assert!(!backoff.is_failing());
        assert!(backoff.next_pause() <= FIRST);
    }
}
