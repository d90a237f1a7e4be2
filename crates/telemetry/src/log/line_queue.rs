//! A bounded queue in front of standard error, which one thread writes.
//!
//! A reader of the log that has stalled blocks writes, and must not block requests: lines that the
//! queue has no room for are dropped and counted.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use prometheus::IntCounter;
use tracing::warn;

/// Maximum number of bytes that wait to be written; as many may be in a write that is blocked.
const MAX_BYTES: usize = 1024 * 1024;

/// Size of a buffer that is kept between writes.
const KEPT_BYTES: usize = 16 * 1024;

/// Lines that wait to be written.
#[derive(Debug)]
pub(super) struct LineQueue {
    state: Mutex<State>,
    /// Notified when there are lines to write.
    filled: Condvar,
    /// Notified when all lines were written.
    drained: Condvar,
    /// Lines that were dropped.
    dropped: IntCounter,
}

#[derive(Debug, Default)]
struct State {
    /// Complete lines, one after the other.
    lines: Vec<u8>,
    is_writing: bool,
    /// Lines dropped since this was last logged.
    dropped: u64,
}

// === impl LineQueue ===

impl LineQueue {
    /// Starts a thread that writes to `out`. Lines that are dropped are counted in `dropped`.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        dropped: IntCounter,
    ) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            drained: Condvar::new(),
            dropped,
        });
        let written = Arc::clone(&queue);
        thread::Builder::new().name("log".to_owned()).spawn(move || written.write_to(out))?;
        Ok(queue)
    }

    /// Number of lines that were dropped.
    pub(super) const fn dropped(&self) -> &IntCounter {
        &self.dropped
    }

    /// Waits until all lines were written, at most for `timeout`.
    pub(super) fn flush(&self, timeout: Duration) {
        let is_pending = |state: &mut State| state.is_writing || !state.lines.is_empty();
        let _ = self.drained.wait_timeout_while(self.state(), timeout, is_pending);
    }

    /// Adds a line, or drops it if there is no room.
    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + line.len() > MAX_BYTES {
            state.dropped += 1;
            self.dropped.inc();
            return;
        }
        let was_empty = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        drop(state);
        if was_empty {
            self.filled.notify_one();
        }
    }

    fn write_to(&self, mut out: impl Write) {
        let mut lines = Vec::new();
        loop {
            let dropped = self.take(&mut lines);
            // There is nowhere to report a failure.
            let _ = out.write_all(&lines);
            lines.clear();
            lines.shrink_to(KEPT_BYTES);
            if dropped > 0 {
                warn!(dropped, "dropped {dropped} log lines: standard error was not read in time");
            }
            self.finish();
        }
    }

    /// Waits for lines, and moves them to `lines`. Returns how many were dropped after them.
    fn take(&self, lines: &mut Vec<u8>) -> u64 {
        let is_empty = |state: &mut State| state.lines.is_empty();
        let state = self.filled.wait_while(self.state(), is_empty);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        mem::swap(&mut state.lines, lines);
        state.is_writing = true;
        mem::take(&mut state.dropped)
    }

    fn finish(&self) {
        let mut state = self.state();
        state.is_writing = false;
        if state.lines.is_empty() {
            self.drained.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent even after a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Every call is a complete line: the subscriber formats an event before it writes it.
impl Write for &LineQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, pipe};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn counter() -> IntCounter {
        IntCounter::new("dropped", "Dropped lines.").unwrap()
    }

    fn line(number: u64) -> String {
        format!("{number:>1023}\n")
    }

    #[test]
    fn lines_beyond_the_bound_are_dropped_while_the_log_is_not_read() {
        let (reader, writer) = pipe().unwrap();
        let queue = LineQueue::start(writer, counter()).unwrap();
        // More than fits into the pipe, a write and the queue.
        let count = 10 * (MAX_BYTES / 1024) as u64;
        for number in 0..count {
            (&*queue).write_all(line(number).as_bytes()).unwrap();
        }
        let dropped = queue.dropped().get();
        assert!(dropped > 0 && dropped < count, "{dropped}");
        // The log is not read: this wait is bounded.
        queue.flush(Duration::ZERO);

        let written = count - dropped;
        let lines = BufReader::new(reader).lines().take(written as usize);
        let read: Vec<u64> = lines.map(|line| line.unwrap().trim().parse().unwrap()).collect();
        assert!(read.is_sorted(), "{read:?}");
        assert_eq!(read.len() as u64, written);
    }

    #[test]
    fn a_flush_waits_for_all_lines() {
        let (reader, writer) = pipe().unwrap();
        let queue = LineQueue::start(writer, counter()).unwrap();
        let reading = thread::spawn(move || {
            let mut lines = BufReader::new(reader).lines();
            lines.find(|line| line.as_ref().unwrap().trim() == "999").is_some()
        });
        for number in 0..1000 {
            (&*queue).write_all(line(number).as_bytes()).unwrap();
        }
        queue.flush(LIMIT);
        let state = queue.state();
        assert!(!state.is_writing && state.lines.is_empty());
        assert!(reading.join().unwrap());
        assert_eq!(queue.dropped().get(), 0);
    }
}
