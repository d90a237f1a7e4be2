//! Repeated reads of files, some of which may hang.

use std::{sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{sync::Semaphore, task, time};

/// Reads files again and again on blocking threads, for a task that polls them.
///
/// A read may hang, as on a network file system that is gone, and its thread cannot be ended. It is
/// reported then and another one begins, since its file may have been replaced meanwhile. The
/// number of threads that hang is bounded; beyond it, the next read begins when one of them
/// returns.
#[derive(Debug)]
pub struct FileReads {
    /// One for each thread that may still be started. A thread keeps its permit until it returns.
    free: Arc<Semaphore>,
    /// Time after which the next read is reported. Doubles while reads hang: the file is then read
    /// again within about the time that it has been hanging for.
    patience: Duration,
}

/// A read without a result.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ReadFailure {
    /// It has not returned. Its result is dropped when it does, since it may be out of date.
    #[error("a read has not returned for 10 seconds: check the file system, or replace the file")]
    Hangs,
    /// It panicked.
    #[error("a read failed unexpectedly: the log has the panic")]
    Panicked,
    /// The runtime is shutting down.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

/// Time after which a read hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Maximum time between two reads while they hang.
const MAX_PATIENCE: Duration = Duration::from_secs(3600);

/// Maximum number of threads that hang: with a doubled wait between them, they last for most of an
/// hour.
const MAX_THREADS: usize = 8;

impl FileReads {
    /// Calls `read` on a blocking thread.
    ///
    /// # Errors
    ///
    /// When `read` does not return in time, or panics.
    pub async fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ReadFailure> {
        let outcome = time::timeout(self.patience, start(Arc::clone(&self.free), read)).await;
        self.patience = match outcome {
            Ok(_) => PATIENCE,
            Err(_) => self.patience.saturating_mul(2).min(MAX_PATIENCE),
        };
        outcome.unwrap_or(Err(ReadFailure::Hangs))
    }
}

impl Default for FileReads {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(MAX_THREADS)), patience: PATIENCE }
    }
}

async fn start<T: Send + 'static>(
    free: Arc<Semaphore>,
    read: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ReadFailure> {
    let permit = free.acquire_owned().await.map_err(|_| ReadFailure::ShuttingDown)?;
    let reading = task::spawn_blocking(move || {
        let _permit = permit;
        read()
    });
    reading.await.map_err(|error| {
        if error.is_panic() { ReadFailure::Panicked } else { ReadFailure::ShuttingDown }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::time::Instant;

    use super::*;

    /// Reads until the returned sender is dropped, and returns when the read is given up.
    async fn hang(reads: &mut FileReads) -> mpsc::Sender<()> {
        let (held, released) = mpsc::channel::<()>();
        let reading = reads.read(move || released.recv().is_ok());
        // The clock stands still while a thread reads.
        let ticking = async {
            loop {
                time::advance(Duration::from_secs(1)).await;
            }
        };
        let failure = tokio::select! {
            biased;
            read = reading => read,
            () = ticking => unreachable!(),
        };
        assert_eq!(failure, Err(ReadFailure::Hangs));
        held
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_hangs_is_reported_and_the_next_one_begins() {
        let mut reads = FileReads::default();
        let began = Instant::now();
        let hanging = hang(&mut reads).await;
        assert!((10..12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        assert_eq!(reads.read(|| "replaced").await, Ok("replaced"));
        assert_eq!(reads.patience, PATIENCE);
        drop(hanging);
    }

    #[tokio::test(start_paused = true)]
    async fn threads_that_hang_are_bounded_and_one_that_returns_lets_the_next_read_begin() {
        let mut reads = FileReads::default();
        let mut hanging = Vec::new();
        for _ in 0..MAX_THREADS {
            hanging.push(hang(&mut reads).await);
        }
        assert_eq!(reads.free.available_permits(), 0);
        assert!(reads.patience > Duration::from_secs(1800), "{:?}", reads.patience);
        // One more is not started: its channel is dropped unread.
        assert!(hang(&mut reads).await.send(()).is_err());
        hanging.pop();
        assert_eq!(reads.read(|| "back").await, Ok("back"));
    }

    #[tokio::test]
    async fn a_panic_is_reported() {
        let mut reads = FileReads::default();
        let failure = reads.read(|| assert_eq!(1, 2, "a defect")).await;
        assert_eq!(failure, Err(ReadFailure::Panicked));
        assert_eq!(reads.read(|| "next").await, Ok("next"));
    }
}
