//! Timeout of a decision over several requests.

use std::time::Duration;

use headgate::StoreError;
use tokio::time::{Instant, timeout};

/// Remaining time of a decision for requests to DynamoDB and retries.
#[derive(Debug)]
pub(crate) struct TimeBudget {
    all: Duration,
    left: Duration,
}

impl TimeBudget {
    pub(crate) const fn new(all: Duration) -> Self {
        Self { all, left: all }
    }

    /// Runs `work`, until the budget is used up.
    pub(crate) async fn spend<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let done = timeout(self.left, work).await;
        self.left = self.left.saturating_sub(began.elapsed());
        done.map_err(|_| StoreError::Timeout(self.all))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_time_spent_on_work_counts() {
        let mut time = TimeBudget::new(Duration::from_secs(3));
        assert!(time.spend(sleep(Duration::from_secs(2))).await.is_ok());
        sleep(Duration::from_secs(60)).await;
        let error = time.spend(sleep(Duration::from_secs(2))).await.unwrap_err();
        assert!(matches!(error, StoreError::Timeout(all) if all == Duration::from_secs(3)));
    }
}
