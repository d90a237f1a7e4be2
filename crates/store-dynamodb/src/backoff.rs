//! How long to wait before the next try.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use headgate::StoreError;

use crate::{DynamoDbError, error::Failure};

/// Counts the tries of one decision.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    /// The most tries at one decision.
    const MAX_TRIES: u32 = 20;

    /// The first wait is shorter than this, each later one than twice the one before.
    const FIRST: Duration = Duration::from_millis(4);

    /// No wait is longer.
    const LONGEST: Duration = Duration::from_millis(100);

    /// Waits a random while after a try that failed, or says that there were enough.
    pub(crate) async fn pause(&mut self, failure: Failure) -> Result<(), StoreError> {
        self.tries += 1;
        match failure {
            Failure::Broken(error) => return Err(error),
            Failure::Contended if self.tries >= Self::MAX_TRIES => {
                return Err(StoreError::Contended(self.tries));
            }
            Failure::Throttled(code) if self.tries >= Self::MAX_TRIES => {
                return Err(StoreError::unavailable(DynamoDbError::Throttled(code)));
            }
            _ => {}
        }
        let longest = (Self::FIRST * (1 << (self.tries - 1).min(10))).min(Self::LONGEST);
        // Of those who met here, each comes back at another time.
        let share = RandomState::new().build_hasher().finish() as u32;
        tokio::time::sleep(longest.mul_f64(f64::from(share) / f64::from(u32::MAX))).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error after all tries failed like this, and how long they took.
    async fn exhaust(failure: impl Fn() -> Failure) -> (StoreError, Duration) {
        let began = tokio::time::Instant::now();
        let mut backoff = Backoff::default();
        loop {
            if let Err(error) = backoff.pause(failure()).await {
                return (error, began.elapsed());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_so_many_tries_and_no_more() {
        let (error, took) = exhaust(|| Failure::Contended).await;
        assert!(matches!(error, StoreError::Contended(Backoff::MAX_TRIES)), "{error}");
        assert!(!error.is_outage(), "one subject's trouble is not the store's");
        let most = Backoff::LONGEST * Backoff::MAX_TRIES;
        assert!(took > Duration::ZERO && took < most, "{took:?}");

        let (error, _) = exhaust(|| Failure::Throttled("ThrottlingException".to_owned())).await;
        assert!(error.is_outage() && error.to_string().contains("ThrottlingException"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_broken_is_not_tried_again() {
        let began = tokio::time::Instant::now();
        let broken = || Failure::Broken(StoreError::Corrupt(String::new()));
        let error = Backoff::default().pause(broken()).await.unwrap_err();
        assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
