//! Exponential backoff with jitter.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use headgate::StoreError;

use crate::{DynamoDbError, error::AttemptError};

/// Retries of one decision.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Maximum number of attempts.
    const MAX_ATTEMPTS: u32 = 20;

    /// Upper bound of the first wait. It doubles with each attempt.
    const FIRST: Duration = Duration::from_millis(4);

    /// Upper bound of all waits.
    const MAX: Duration = Duration::from_millis(100);

    /// Waits after a failed attempt, or returns the error if it cannot be retried.
    pub(crate) async fn pause(&mut self, error: AttemptError) -> Result<(), StoreError> {
        self.attempts += 1;
        match error {
            AttemptError::Permanent(error) => return Err(error),
            AttemptError::Contended if self.attempts >= Self::MAX_ATTEMPTS => {
                return Err(StoreError::Contended(self.attempts));
            }
            AttemptError::Throttled(code) if self.attempts >= Self::MAX_ATTEMPTS => {
                return Err(StoreError::unavailable(DynamoDbError::Throttled(code)));
            }
            _ => {}
        }
        let longest = (Self::FIRST * (1 << (self.attempts - 1).min(10))).min(Self::MAX);
        // Jitter, so that clients that collided do not collide again.
        let share = RandomState::new().build_hasher().finish() as u32;
        tokio::time::sleep(longest.mul_f64(f64::from(share) / f64::from(u32::MAX))).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error after all attempts have failed in this way, and the time that they took.
    async fn exhaust(error: impl Fn() -> AttemptError) -> (StoreError, Duration) {
        let began = tokio::time::Instant::now();
        let mut backoff = Backoff::default();
        loop {
            if let Err(error) = backoff.pause(error()).await {
                return (error, began.elapsed());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retries_are_bounded() {
        let (error, took) = exhaust(|| AttemptError::Contended).await;
        assert!(matches!(error, StoreError::Contended(Backoff::MAX_ATTEMPTS)), "{error}");
        assert!(!error.is_outage(), "contention on one key is not an outage");
        let most = Backoff::MAX * Backoff::MAX_ATTEMPTS;
        assert!(took > Duration::ZERO && took < most, "{took:?}");

        let (error, _) =
            exhaust(|| AttemptError::Throttled("ThrottlingException".to_owned())).await;
        assert!(error.is_outage() && error.to_string().contains("ThrottlingException"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn permanent_errors_are_not_retried() {
        let began = tokio::time::Instant::now();
        let broken = || AttemptError::Permanent(StoreError::Corrupt(String::new()));
        let error = Backoff::default().pause(broken()).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
