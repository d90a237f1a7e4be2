//! Work that continues when its caller disconnects, so that the audit log records the outcome.

use std::{future, panic};

use headgate_telemetry::trace::within_current;

/// Runs `work` as a task of its own, which dropping this future does not stop.
pub async fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(within_current(work)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(cause) => panic::resume_unwind(cause),
            // The runtime is shutting down, and this task with it.
            Err(_) => future::pending().await,
        },
    }
}
