//! Answers that must not take too long.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{self, error::Elapsed};

/// Waits for an answer, up to `timeout`. An answer that is ready at once, as most are, sets no
/// timer.
pub async fn in_time<F: Future + Unpin>(
    timeout: Duration,
    mut answer: F,
) -> Result<F::Output, Elapsed> {
    let at_once = poll_fn(|context| Poll::Ready(Pin::new(&mut answer).poll(context))).await;
    match at_once {
        Poll::Ready(answer) => Ok(answer),
        Poll::Pending => time::timeout(timeout, answer).await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        pin::pin,
    };

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn only_a_pending_answer_times_out() {
        assert_eq!(in_time(Duration::ZERO, ready(1)).await, Ok(1));
        assert_eq!(in_time(TIMEOUT, pin!(time::sleep(TIMEOUT / 2))).await, Ok(()));
        assert!(in_time(TIMEOUT, pending::<()>()).await.is_err());
    }
}
