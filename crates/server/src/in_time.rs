//! Answers that must not take too long.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{self, error::Elapsed};

/// Waits for an answer for as long as `patience`. One that is there at once, as most are, sets no
/// timer.
pub(crate) async fn in_time<F: Future + Unpin>(
    patience: Duration,
    mut answer: F,
) -> Result<F::Output, Elapsed> {
    let at_once = poll_fn(|context| Poll::Ready(Pin::new(&mut answer).poll(context))).await;
    match at_once {
        Poll::Ready(answer) => Ok(answer),
        Poll::Pending => time::timeout(patience, answer).await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        pin::pin,
    };

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_is_there_is_taken_and_what_comes_is_waited_for() {
        assert_eq!(in_time(Duration::ZERO, ready(1)).await, Ok(1));
        assert_eq!(in_time(PATIENCE, pin!(time::sleep(PATIENCE / 2))).await, Ok(()));
        assert!(in_time(PATIENCE, pending::<()>()).await.is_err());
    }
}
