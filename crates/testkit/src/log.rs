//! The log of a test.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracing::{Dispatch, subscriber::DefaultGuard};
use tracing_subscriber::fmt::MakeWriter;

/// Captures what the current thread logs, until it is dropped.
///
/// ```
/// let log = headgate_testkit::CapturedLog::start("info");
/// tracing::warn!("low on coffee");
/// assert!(log.text().contains("low on coffee"));
/// ```
pub struct CapturedLog {
    lines: Lines,
    _capture: DefaultGuard,
    // With a single subscriber, a callsite that another test's thread reaches first would be cached
    // as disabled for all threads.
    _other: Dispatch,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    /// Captures events that `filter` selects, a list as in `RUST_LOG`.
    pub fn start(filter: &str) -> Self {
        let other = Dispatch::new(tracing_subscriber::registry());
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false);
        let capture = tracing::subscriber::set_default(subscriber.with_env_filter(filter).finish());
        Self { lines, _capture: capture, _other: other }
    }

    /// Everything that was logged so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lines.lock()).into_owned()
    }

    /// The lines at ERROR since the last call.
    pub fn take_errors(&self) -> Vec<String> {
        let text = std::mem::take(&mut *self.lines.lock());
        let text = String::from_utf8_lossy(&text);
        text.lines().filter(|line| line.contains(" ERROR ")).map(str::to_owned).collect()
    }
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
