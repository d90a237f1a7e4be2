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
